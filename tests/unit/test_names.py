"""What may be a name, and how dotted names are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forklake.errors import InvalidName
from forklake.model.names import QualifiedName, check_name, folder_for, quoted

LEGAL = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=255).filter(str.strip)


@given(LEGAL)
def test_any_printable_text_is_a_name(name: str) -> None:
    assert check_name(name, "table") == name


@given(LEGAL, LEGAL)
def test_a_qualified_name_reads_back_as_it_is_written(schema: str, name: str) -> None:
    written = QualifiedName(schema, name)
    assert QualifiedName.parse(str(written)) == written
    assert QualifiedName.parse((schema, name)) == written
    assert QualifiedName.parse(f"{quoted(schema)}.{quoted(name)}") == written


@pytest.mark.parametrize(
    "name", ["", " ", "\t", "a\0b", "a\nb", "\x7f", "\ud800", "x" * 256, None, 7, b"bytes", ["a"]]
)
def test_what_cannot_be_a_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidName) as refusal:
        check_name(name, "table")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ("orders", "main", "orders"),
        ("sales.orders", "sales", "orders"),
        ('"odd.schema"."a ""b"""', "odd.schema", 'a "b"'),
        ('sales."x.y"', "sales", "x.y"),
        ('o"clock', "main", 'o"clock'),
        ("naïve.表", "naïve", "表"),
    ],
)
def test_dots_divide_outside_quotes(text: str, schema: str, name: str) -> None:
    assert QualifiedName.parse(text) == QualifiedName(schema, name)


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a.b.c", '"a', '"a"b', '"a".', ("a", "b", "c"), ("", "b")]
)
def test_a_dotted_name_that_does_not_divide_is_refused(text) -> None:
    with pytest.raises(InvalidName):
        QualifiedName.parse(text)


@given(LEGAL)
def test_a_folder_is_always_one_plain_folder(name: str) -> None:
    folder = folder_for(name, "0f4b4517-82e4-457e-885d-ba0c6ec4ffb4")
    assert folder.endswith("/")
    inner = folder[:-1]
    assert inner.isascii()
    assert "/" not in inner
    assert not inner.startswith(".")


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../../etc", "a b", "x" * 65, "-rf", "été", 'q"'])
def test_a_name_that_a_file_system_might_misread_gets_a_uuid_folder(name: str) -> None:
    assert folder_for(name, "some-uuid") == "some-uuid/"
