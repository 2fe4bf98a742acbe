"""SQLAlchemy: connecting by a URL, statements, transactions, definitions and objects."""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

import forklake
from forklake.sqlalchemy import HUGEINT
from tests.contract.sqlalchemy.conftest import engine_url


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=uuid.uuid4)
    name: Mapped[str]
    balance: Mapped[Decimal | None]
    at: Mapped[datetime | None]
    tags = mapped_column(sa.ARRAY(sa.String))
    about = mapped_column(sa.JSON)
    orders: Mapped[list[Order]] = relationship(back_populates="customer")


class Order(Base):
    __tablename__ = "order"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    customer_id: Mapped[uuid.UUID] = mapped_column(sa.ForeignKey("customer.id"), index=True)
    customer: Mapped[Customer] = relationship(back_populates="orders")


def test_objects_live_in_tables_of_the_lake(lake: forklake.Lake, engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    before = len(lake.snapshots())
    with Session(engine) as session:
        session.add_all(
            Customer(
                name=f"c{number}", balance=Decimal("1.25"), at=datetime(2026, 1, 31), tags=["a", "b"],
                about={"k": [number]}, orders=[Order(id=number)],
            )
            for number in range(3)
        )  # fmt: skip
        session.commit()
        assert len(lake.snapshots()) == before + 1
        found = session.scalars(sa.select(Customer).where(Customer.name.ilike("C1"))).one()
        assert (found.balance, found.at, found.tags) == (Decimal("1.25"), datetime(2026, 1, 31), ["a", "b"])
        assert (found.about, [order.id for order in found.orders]) == ({"k": [1]}, [1])
        found.name = "changed"
        session.delete(found.orders[0])
        session.commit()
        counted = (
            sa.select(Customer.name, sa.func.count(Order.id))
            .join(Order, isouter=True)
            .group_by(Customer.name)
            .order_by(Customer.name)
        )
        assert list(map(tuple, session.execute(counted))) == [("c0", 1), ("c2", 1), ("changed", 0)]
        newest = sa.select(Customer.name).where(Customer.about["k"][0].as_integer() == 2)
        assert session.scalars(newest).all() == ["c2"]
    Base.metadata.drop_all(engine)
    assert lake.catalog("shop").tables() == []


def test_statements_speak_duckdb(engine: sa.Engine) -> None:
    table = sa.Table(
        "t", sa.MetaData(), sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(20), comment="who"), sa.Column("share", sa.Float), comment="things",
    )  # fmt: skip
    with engine.begin() as connection:
        table.create(connection)
        rows = [{"id": number, "name": f"n{number % 2}", "share": number / 2} for number in range(6)]
        assert connection.execute(table.insert(), rows).rowcount == 6
        returned = connection.execute(table.insert().values(id=9, name="x").returning(table.c.id)).scalar()
        assert returned == 9

        def names(query: Any) -> list[Any]:
            return list(connection.scalars(query))

        ordered = sa.select(table.c.id).order_by(table.c.id)
        assert names(ordered.limit(2).offset(1)) == [1, 2]
        assert names(ordered.offset(5)) == [5, 9]
        assert names(ordered.fetch(1)) == [0]
        assert names(ordered.where(table.c.name.regexp_match("^n1"))) == [1, 3, 5]
        assert names(ordered.where(~table.c.name.regexp_match("N", flags="i"))) == [9]
        assert names(ordered.where(table.c.id.in_([]))) == []
        assert names(ordered.with_for_update().where(table.c.id.bitwise_xor(1) == 0)) == [1]
        each = sa.select(table.c.name).ext(distinct_on(table.c.name)).order_by(table.c.name)
        assert names(each) == ["n0", "n1", "x"]
        assert names(sa.select(sa.cast(sa.literal("7"), HUGEINT))) == [7]
        assert names(sa.select(sa.literal("a\\b'c", literal_execute=True))) == ["a\\b'c"]
        changed = connection.execute(table.update().where(table.c.id < 2).values(share=table.c.share + 1))
        assert changed.rowcount == 2
        assert connection.execute(table.delete().where(table.c.id == 9)).rowcount == 1
        comment = sa.inspect(connection).get_table_comment("t")
        assert comment == {"text": "things"}


def test_a_block_is_a_transaction_and_autocommit_has_none(lake: forklake.Lake, engine: sa.Engine) -> None:
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE lost (id INTEGER)")
        raise ZeroDivisionError
    before = len(lake.snapshots())
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE kept (id INTEGER)")
        connection.exec_driver_sql("INSERT INTO kept VALUES (1)")
    assert len(lake.snapshots()) == before + 1
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CALL fork('shop', 'agent')")
    assert [table.name for table in lake.catalog("agent").tables()] == ["kept"]
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "REPEATABLE READ"


def test_what_is_wrong_is_an_error_of_sqlalchemy(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match="nothing"):
            connection.exec_driver_sql("FROM nothing")
        connection.rollback()
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER NOT NULL)")
        with pytest.raises(sa.exc.IntegrityError):
            connection.exec_driver_sql("INSERT INTO t VALUES (NULL)")


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, unique=True)), "UNIQUE"),
        (sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer), sa.CheckConstraint("id > 0")), "CHECK"),
        (sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, sa.Identity())), "no numbers"),
        (sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer, sa.Computed("1"))), "generated"),
        (
            sa.Table("t", sa.MetaData(), sa.Column("id", sa.Integer), sa.Index("i", "id", unique=True)),
            "unique",
        ),
    ],
)
def test_what_is_not_enforced_is_refused_rather_than_promised(
    table: sa.Table, why: str, engine: sa.Engine
) -> None:
    with pytest.raises(sa.exc.CompileError, match=why), engine.begin() as connection:
        table.create(connection)
    assert sa.inspect(engine).get_table_names() == []


def test_an_engine_opens_the_lake_once_and_says_what_the_url_lacks(
    lake_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forklake.sqlalchemy import dialect

    opened: list[str] = []

    def counting(url: str, **options: Any) -> forklake.Lake:
        opened.append(url)
        return forklake.connect(url, **options)

    monkeypatch.setattr(dialect, "open_lake", counting)
    made = sa.create_engine(engine_url(lake_url, create="true", data_path=str(tmp_path / "files")))
    with made.connect() as one, made.connect() as other:
        assert one.exec_driver_sql("SELECT 1").scalar() == other.exec_driver_sql("SELECT 1").scalar() == 1
    made.dispose()
    assert opened == [lake_url]
    limited = sa.create_engine(engine_url(lake_url, read_only="true", max_rows="2", max_seconds="60"))
    with limited.connect() as connection:
        with pytest.raises(sa.exc.OperationalError, match="more than 2 rows"):
            connection.exec_driver_sql("FROM range(3)").fetchall()
        with pytest.raises(sa.exc.ProgrammingError, match="only reading"):
            connection.exec_driver_sql("CREATE TABLE t (id INTEGER)")
    limited.dispose()
    with pytest.raises(sa.exc.ArgumentError, match="names no catalog"):
        sa.create_engine(f"forklake+{lake_url}").connect()
    with pytest.raises(sa.exc.ProgrammingError, match='"other"'):
        sa.create_engine(engine_url(lake_url, "other")).connect()
