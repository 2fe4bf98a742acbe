"""Where statements begin and end in a text, whatever is written in between."""

from __future__ import annotations

import pytest

from forklake.errors import InvalidSql
from forklake.sql.parser.parse import parse, split
from forklake.sql.statements import CreateTable, Delete, DropObject, Query, Update


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", []),
        (" \n\t", []),
        (";;; ;", []),
        ("-- nothing", []),
        ("/* nothing */ ; -- at all", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; ;\r\nSELECT 2;;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';';SELECT \";\"", ["SELECT ';'", 'SELECT ";"']),
        ("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"]),
        ("SELECT E'\\';'; SELECT 2", ["SELECT E'\\';'", "SELECT 2"]),
        ("SELECT e'\\\\'; SELECT 2", ["SELECT e'\\\\'", "SELECT 2"]),
        ("SELECT '\\'; SELECT 2", ["SELECT '\\'", "SELECT 2"]),
        ("SELECT date'2024-01-01'; SELECT 2", ["SELECT date'2024-01-01'", "SELECT 2"]),
        ("SELECT $$;'$$; SELECT $a$;$$;$a$", ["SELECT $$;'$$", "SELECT $a$;$$;$a$"]),
        ("SELECT a$b; SELECT c$b", ["SELECT a$b", "SELECT c$b"]),
        ("SELECT $1;SELECT $1", ["SELECT $1", "SELECT $1"]),
        ("SELECT 1 -- ;\n;SELECT /* ; /* ; */ ; */ 2", ["SELECT 1", "SELECT /* ; /* ; */ ; */ 2"]),
        ("SELECT 1 /* end */ -- end\n", ["SELECT 1"]),
        ("-- first\nSELECT 1", ["SELECT 1"]),
        ("SELECT 1--2\n+3", ["SELECT 1--2\n+3"]),
        ("SELECT [';', ';'], {'a': ';'}; SELECT 2", ["SELECT [';', ';'], {'a': ';'}", "SELECT 2"]),
        ("SELECT 1 - -2 /3* 4; SELECT 2", ["SELECT 1 - -2 /3* 4", "SELECT 2"]),
        ("\ufeffSELECT\u00a01\u3000;\u2003SELECT 2\u200b", ["SELECT\u00a01", "SELECT 2"]),
        ("SELECT 'ü😀' AS é; SELECT 😀 FROM 表", ["SELECT 'ü😀' AS é", "SELECT 😀 FROM 表"]),
    ],
)
def test_statements_end_at_semicolons(text: str, texts: list[str]) -> None:
    assert [one.text for one in split(text)] == texts
    assert [one.text for one in parse(text)] == texts
    for one in parse(text):
        assert text[one.start : one.start + len(one.text)] == one.text


@pytest.mark.parametrize(
    "text", ["SELECT (';", "SELECT (1;2", "SELECT 'x", "SELECT $$x", "SELECT 1)", "/* x"]
)
def test_what_is_not_closed_is_refused_when_split(text: str) -> None:
    with pytest.raises(InvalidSql):
        split(text)


def test_statements_can_be_split_that_make_no_sense() -> None:
    assert [one.text for one in split("not sql; (1; 2); at all")] == ["not sql", "(1; 2)", "at all"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT ?, ?", {"1", "2"}),
        ("SELECT $2, $1, $2", {"1", "2"}),
        ("SELECT ?2, ?1", {"1", "2"}),
        ("SELECT $name, $Name_2", {"name", "Name_2"}),
        ("SELECT '?', \"$a\", $$ ? $$, $x$ $b $x$, E'\\'?', a$b, /* ? /* ? */ ? */ 1 -- ?", set()),
        ("SELECT '?', ? /* /* */ */, $a", {"1", "a"}),
        ("DELETE FROM t WHERE a = ? AND b IN (?, ?)", {"1", "2", "3"}),
        ("CALL f(?, x => $y)", {"1", "y"}),
    ],
)
def test_parameters_are_found(text: str, names: set[str]) -> None:
    (parsed,) = parse(text)
    assert parsed.parameters == names


def test_parts_of_a_statement_say_which_parameter_they_take() -> None:
    text = "SELECT ?; UPDATE t SET a = ?, b = '?' || ? FROM s WHERE c = (SELECT ?) RETURNING ?"
    query, update = parse(text)
    assert query.statement == Query(split(text)[0])
    assert query.parameters == {"1"}
    assert update.text == text[10:]
    assert update.parameters == {"1", "2", "3", "4"}
    statement = update.statement
    assert isinstance(statement, Update)
    assert [str(one.value) for one in statement.assignments] == ["$1", "'?' || $2"]
    assert str(statement.where) == "c = (SELECT $3)"
    assert str(statement.returning) == "$4"


def test_parts_of_a_statement_know_their_place() -> None:
    text = 'FROM t;\r\n CREATE TABLE s.t /* x */ (a INT -- b\n) ; DELETE FROM "ü" WHERE a -- c\n = 1 -- d\n;'
    _, create, delete = (one.statement for one in parse(text))
    assert isinstance(create, CreateTable)
    assert create.columns is not None
    assert str(create.columns) == "a INT"
    assert text[create.columns.start :].startswith("a INT -- b")
    assert text[create.name.start :].startswith("s.t")
    assert isinstance(delete, Delete)
    assert delete.where is not None
    assert str(delete.where) == "a -- c\n = 1"
    assert text[delete.where.start :].startswith("a -- c")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("t", "t"),
        ("Straße", "Straße"),
        ("表", "表"),
        ("😀1$_", "😀1$_"),
        ("_t", "_t"),
        ('"T ""x"" .;"', 'T "x" .;'),
        ('"select"', "select"),
        # Words that DuckDB has in its grammar, and that name tables all the same.
        *(
            (word, word)
            for word in ("schema", "index", "values", "between", "row", "key", "set", "begin", "fork")
        ),
        # Letters that have an ASCII letter as their capital make no keyword.
        ("\u017felect", "\u017felect"),
        ("taßle", "taßle"),
    ],
)
def test_names(written: str, name: str) -> None:
    (parsed,) = parse(f"drop\ttable\r\n{written} -- it")
    assert isinstance(parsed.statement, DropObject)
    assert parsed.statement.name.parts == (name,)
    (parsed,) = parse(f"DROP TABLE a . {written}")
    assert isinstance(parsed.statement, DropObject)
    assert parsed.statement.name.parts == ("a", name)


def test_any_keyword_is_a_name_after_a_dot() -> None:
    (parsed,) = parse("DROP TABLE a.select.from")
    assert isinstance(parsed.statement, DropObject)
    assert parsed.statement.name.parts == ("a", "select", "from")


def test_a_keyword_in_letters_beyond_ascii_is_none() -> None:
    with pytest.raises(InvalidSql, match="expected a statement"):
        parse("\u017felect 1")
