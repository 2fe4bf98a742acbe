"""Data types, by name and as drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from forklake.model.types.data_types import SCALARS, DataType, Decimal, List, Map, Scalar, Struct

INT = Scalar("int32")
TEXT = Scalar("varchar")
NAMES = [row.name for row in SCALARS]
# What Arrow cannot say, or says as something else.
NOT_IN_ARROW = ("timetz", "variant")
ONE_WAY = {"int128": Decimal(38, 0), "uint128": Decimal(38, 0), "geometry": Scalar("blob")}

decimals = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
field_names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8).filter(
    str.strip
)


def nested(leaves: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    def structs(children: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
        fields = st.lists(
            st.tuples(field_names, children), min_size=1, max_size=4, unique_by=lambda f: f[0].lower()
        )
        return fields.map(lambda pairs: Struct(tuple(pairs)))

    return st.recursive(
        leaves,
        lambda children: st.one_of(children.map(List), structs(children), st.builds(Map, children, children)),
        max_leaves=6,
    )


leaves = st.one_of(st.sampled_from(NAMES).map(Scalar), decimals)
types = nested(leaves)
arrow_types = nested(
    st.one_of(
        st.sampled_from([n for n in NAMES if n not in NOT_IN_ARROW and n not in ONE_WAY]).map(Scalar),
        decimals,
    )
)
