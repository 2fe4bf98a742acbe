"""ALTER TABLE, VIEW and SCHEMA, and COMMENT ON."""

from __future__ import annotations

from typing import Literal

from forklake.sql.parser import columns
from forklake.sql.parser.ddl import keys
from forklake.sql.parser.problems import syntax_error
from forklake.sql.parser.reader import Reader
from forklake.sql.parser.values import option_names, options
from forklake.sql.statements import (
    AddColumn,
    Alter,
    AlterAction,
    AlterColumnType,
    ColumnPath,
    Comment,
    DropColumn,
    ObjectName,
    RenameColumn,
    RenameObject,
    SetDefault,
    SetNullable,
    SetOptions,
    SetPartitioning,
    SetSortOrder,
)


def alter(reader: Reader) -> Alter:
    """ALTER, whose word was read."""
    if reader.word in ("MACRO", "FUNCTION", "INDEX", "SEQUENCE", "DATABASE", "TYPE", "CATALOG"):
        raise reader.refuse(f"ALTER {reader.word}", "drop it and create it anew")
    word = reader.one_of("TABLE", "VIEW", "SCHEMA")
    if word is None:
        raise reader.expected("TABLE, VIEW or SCHEMA")
    if_exists = reader.take("IF", "EXISTS")
    if word == "TABLE":
        reader.take("ONLY")
        name = reader.object_name("the name of a table")
        action = _action(reader)
        if reader.word == ",":
            raise reader.refuse(
                "ALTER TABLE with several changes", "write an ALTER TABLE for each, in one transaction"
            )
        return Alter("table", name, action, if_exists)
    kind: Literal["view", "schema"] = "view" if word == "VIEW" else "schema"
    name = reader.object_name(f"the name of a {kind}", 3 if kind == "view" else 2)
    reader.expect("RENAME", "TO")
    return Alter(kind, name, _renamed(reader), if_exists)


def _renamed(reader: Reader) -> RenameObject:
    start = reader.start
    return RenameObject(ObjectName((reader.name(),), start))


def _action(reader: Reader) -> AlterAction:
    match reader.one_of("ADD", "DROP", "RENAME", "ALTER", "SET", "RESET"):
        case "ADD":
            return _add(reader)
        case "DROP":
            return _drop(reader)
        case "RENAME":
            return _rename(reader)
        case "ALTER":
            return _alter_column(reader)
        case "SET":
            return _set(reader)
        case "RESET":
            return _reset(reader)
        case _:
            raise reader.expected("ADD, DROP, RENAME, ALTER, SET or RESET")


def _add(reader: Reader) -> AddColumn:
    reader.take("COLUMN")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    columns.refuse_constraint(reader)
    path = reader.path()
    return AddColumn(path, columns.definition(reader), if_not_exists)


def _drop(reader: Reader) -> DropColumn:
    if reader.word in ("CONSTRAINT", "PRIMARY"):
        raise reader.refuse(
            f"DROP {reader.word}", "tables have no constraints but NOT NULL: ALTER c DROP NOT NULL"
        )
    reader.take("COLUMN")
    if_exists = reader.take("IF", "EXISTS")
    path = reader.path()
    return DropColumn(path, if_exists, reader.one_of("CASCADE", "RESTRICT") == "CASCADE")


def _rename(reader: Reader) -> RenameColumn | RenameObject:
    if reader.take("TO"):
        return _renamed(reader)
    if reader.word == "CONSTRAINT":
        raise reader.refuse("RENAME CONSTRAINT", "tables have no constraints with names")
    reader.take("COLUMN")
    path = reader.path()
    reader.expect("TO")
    new_name = reader.name("a column name")
    if reader.word == ".":
        raise syntax_error(
            reader.text, reader.start, "the new name is that of the field alone, without a path", "."
        )
    return RenameColumn(path, new_name)


def _alter_column(reader: Reader) -> AlterColumnType | SetDefault | SetNullable:
    reader.take("COLUMN")
    path = reader.path()
    if reader.take("DROP"):
        if reader.take("DEFAULT"):
            return SetDefault(path, None)
        if reader.take("NOT", "NULL"):
            return SetNullable(path, True)
        raise reader.expected("DEFAULT or NOT NULL")
    if reader.take("SET", "DEFAULT"):
        return SetDefault(path, reader.expression())
    if reader.take("SET", "NOT", "NULL"):
        return SetNullable(path, False)
    if reader.take("TYPE") or reader.take("SET", "TYPE") or reader.take("SET", "DATA", "TYPE"):
        return _type(reader, path)
    raise reader.expected("TYPE, SET DATA TYPE, SET or DROP DEFAULT, or SET or DROP NOT NULL")


def _type(reader: Reader, path: ColumnPath) -> AlterColumnType:
    data_type = reader.until("USING", "COLLATE", comma=True, what="a type")
    if reader.word == "COLLATE":
        raise reader.refuse("COLLATE", "write it where values are compared: ORDER BY name COLLATE nocase")
    using = reader.expression() if reader.take("USING") else None
    return AlterColumnType(path, data_type, using)


def _set(reader: Reader) -> AlterAction:
    if reader.take("PARTITIONED"):
        reader.expect("BY")
        return SetPartitioning(keys(reader))
    if reader.take("SORTED"):
        reader.expect("BY")
        return SetSortOrder(keys(reader))
    if reader.word == "(":
        return SetOptions(options(reader))
    if reader.word == "SCHEMA":
        raise reader.refuse("SET SCHEMA", "CREATE TABLE other.t AS FROM t copies it, DROP TABLE t drops it")
    raise reader.expected("PARTITIONED BY, SORTED BY or (name = value)")


def _reset(reader: Reader) -> AlterAction:
    if reader.take("PARTITIONED"):
        reader.expect("BY")
        return SetPartitioning(())
    if reader.take("SORTED"):
        reader.expect("BY")
        return SetSortOrder(())
    if reader.word == "(":
        return SetOptions(tuple((name, None) for name in option_names(reader)))
    raise reader.expected("PARTITIONED BY, SORTED BY or (name)")


_COMMENTED: dict[str, Literal["table", "view", "schema", "macro", "macro table"]] = {
    "TABLE": "table",
    "VIEW": "view",
    "SCHEMA": "schema",
    "MACRO": "macro",
    "FUNCTION": "macro",
}


def comment(reader: Reader) -> Comment:
    """COMMENT, whose word was read."""
    reader.expect("ON")
    if reader.word in ("INDEX", "TYPE", "SEQUENCE", "DATABASE", "CATALOG"):
        raise reader.refuse(
            f"COMMENT ON {reader.word}", "tables, views, columns, schemas and macros have comments"
        )
    if reader.take("COLUMN"):
        start = reader.start
        parts = reader.parts("the name of a table and a column")
        if not 2 <= len(parts) <= 4:
            raise syntax_error(
                reader.text, start, f'"{".".join(parts)}" is no column: name it as table.column', parts[0]
            )
        return Comment("column", ObjectName(parts[:-1], start), _text(reader), parts[-1:])
    word = reader.one_of(*_COMMENTED)
    if word is None:
        raise reader.expected("TABLE, VIEW, COLUMN, SCHEMA or MACRO")
    kind = _COMMENTED[word]
    if kind == "macro" and reader.take("TABLE"):
        kind = "macro table"
    return Comment(
        kind, reader.object_name(f"the name of a {kind}", 2 if kind == "schema" else 3), _text(reader)
    )


def _text(reader: Reader) -> str | None:
    reader.expect("IS")
    return None if reader.take("NULL") else reader.string("a string in single quotes or NULL")
