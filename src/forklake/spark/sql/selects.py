"""QUALIFY and DISTINCT ON, which Spark does not have, as a condition on the rows of a sub-query. Pure."""

from __future__ import annotations

from forklake.lazy.sqlglot import exp

_INSIDE = "forklake_inside"
_KEPT = "forklake_kept"


def without_qualify(select: exp.Select) -> exp.Expr:
    """The same query, whose windows are computed before rows are chosen by them."""
    qualify, distinct = select.args.get("qualify"), select.args.get("distinct")
    on = None if distinct is None else distinct.args.get("on")
    if qualify is None and on is None:
        return select
    inner = select.copy()
    order, limit, offset, with_ = (inner.args.get(name) for name in ("order", "limit", "offset", "with_"))
    for name in ("qualify", "order", "limit", "offset", "with_"):
        inner.set(name, None)
    conditions = [] if qualify is None else [qualify.this.copy()]
    if on is not None:
        keys = [one.copy() for one in on.expressions]
        by = exp.Order(expressions=[one.copy() for one in keys]) if order is None else order.copy()
        first = exp.Window(this=exp.RowNumber(), partition_by=keys, order=by)
        conditions.append(exp.EQ(this=first, expression=exp.Literal.number(1)))
    inner.set("distinct", None)
    hidden = [exp.alias_(exp.and_(*conditions), _KEPT)]
    for at, key in enumerate([] if order is None else order.expressions):
        if not isinstance(key.this, exp.Literal):
            hidden.append(exp.alias_(key.this.copy(), f"forklake_key{at}"))
            key.set("this", exp.column(hidden[-1].alias))
    for at, one in enumerate(inner.expressions):
        if not isinstance(one, exp.Alias | exp.Star | exp.Column):
            one.replace(exp.alias_(one.copy(), f"forklake_value{at}"))
    inner.set("expressions", [*inner.expressions, *hidden])
    star = exp.Star(except_=[exp.to_identifier(one.alias) for one in hidden])
    outer = exp.Select(expressions=[star]).from_(inner.subquery(_INSIDE)).where(exp.column(_KEPT))
    if distinct is not None and on is None:
        outer.set("distinct", exp.Distinct())
    for name, part in (("order", order), ("limit", limit), ("offset", offset), ("with_", with_)):
        outer.set(name, part)
    return outer
