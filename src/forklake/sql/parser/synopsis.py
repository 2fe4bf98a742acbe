r"""How each statement is written: what `\h` shows at the prompt, and the reference in docs/sql-reference.md.

Words in capitals are written as they are, other words stand for something. `[ ]` may be left out, `{ | }` is
a choice, and `[, …]` more of the word or the brackets before it. A test makes statements of all this and has
them parsed.
"""

from __future__ import annotations

from collections.abc import Mapping

_QUERY = """\
[ WITH [ RECURSIVE ] cte [, …] ]
{ SELECT [ DISTINCT ] expression [, …] [ FROM source [, …] ] | FROM source [, …] [ SELECT expression [, …] ] }
[ WHERE condition ] [ GROUP BY { ALL | expression [, …] } ] [ HAVING condition ] [ QUALIFY condition ]
[ { UNION | INTERSECT | EXCEPT } [ ALL ] query ] [ ORDER BY { ALL | expression [, …] } ] [ LIMIT number ]
where cte is name AS ( query )
and source is
{ table [ AS alias ] [ AT ( { VERSION => number | TIMESTAMP => string } ) ]
| function ( ) | ( query ) AS alias }
[ { JOIN | LEFT JOIN | RIGHT JOIN | FULL JOIN | SEMI JOIN | ANTI JOIN } table ON condition ]"""

_WHEN = """\
where clause is
{ WHEN MATCHED [ AND condition ] THEN { UPDATE SET assignment [, …] | UPDATE SET * | UPDATE BY NAME | DELETE }
| WHEN NOT MATCHED BY SOURCE [ AND condition ] THEN { UPDATE SET assignment [, …] | DELETE }
| WHEN NOT MATCHED [ BY TARGET ] [ AND condition ] THEN
{ INSERT ( column ) VALUES ( value ) | INSERT * | INSERT BY NAME | INSERT DEFAULT VALUES }
| WHEN MATCHED [ AND condition ] THEN { DO NOTHING | ERROR [ string ] } }
and assignment is column = value
and value is { expression | DEFAULT }"""

SYNOPSES: Mapping[str, str] = {
    "SELECT": _QUERY,
    "VALUES": "VALUES ( expression [, …] )",
    "TABLE": "TABLE table",
    "PIVOT": "PIVOT table ON column [ USING aggregate ] [ GROUP BY column ]",
    "UNPIVOT": "UNPIVOT table ON column [, …]",
    "DESCRIBE": "{ DESCRIBE | SUMMARIZE } { table | query }",
    "SHOW": """\
SHOW { TABLES [ FROM schema ] | ALL TABLES | SCHEMAS | DATABASES | INDEXES [ FROM table ] | table }""",
    "EXPLAIN": "EXPLAIN [ ANALYZE ] query",
    "INSERT": """\
[ WITH name AS ( query ) ]
INSERT INTO table [ AS alias ]
{ [ ( column [, …] ) ] query | BY NAME query | [ ( column ) ] VALUES row [, …] | DEFAULT VALUES }
[ RETURNING expression [, …] ]
where row is ( value )
and value is { expression | DEFAULT }""",
    "UPDATE": """\
[ WITH name AS ( query ) ]
UPDATE table [ AS alias ] SET assignment [, …]
[ FROM source ] [ WHERE condition ] [ RETURNING expression [, …] ]
where assignment is { column | column.field } = value
and value is { expression | DEFAULT }
and source is { table [ AS alias ] | ( query ) AS alias } [ JOIN table ON condition ]""",
    "DELETE": """\
[ WITH name AS ( query ) ]
DELETE FROM table [ AS alias ] [ USING source ] [ WHERE condition ] [ RETURNING expression [, …] ]
where source is { table [ AS alias ] | ( query ) AS alias }""",
    "TRUNCATE": "TRUNCATE [ TABLE ] table",
    "MERGE INTO": f"""\
[ WITH name AS ( query ) ]
MERGE INTO table [ AS alias ] USING {{ table [ AS alias ] | ( query ) AS alias }}
{{ ON condition | USING ( column [, …] ) }} clause [ … ] [ RETURNING {{ * | merge_action, * }} ]
{_WHEN}""",
    "COPY": """\
COPY { table [ ( column [, …] ) ] | ( query ) } TO file [ ( setting [, …] ) ]
or
COPY table [ ( column [, …] ) ] FROM file [ ( setting [, …] ) ]
where setting is option string""",
    "CREATE TABLE": """\
CREATE { TABLE [ IF NOT EXISTS ] | OR REPLACE TABLE } table
{ ( definition [, …] ) layout | LIKE table layout | [ ( column [, …] ) ] layout AS query [ WITH NO DATA ] }
where definition is column type [ NOT NULL ] [ DEFAULT expression ] [ COMMENT string ]
and layout is
[ PARTITIONED BY ( transform [, …] ) ] [ SORTED BY ( order [, …] ) ] [ WITH ( setting [, …] ) ]
and transform is
{ column | year(column) | month(column) | day(column) | hour(column) | bucket(16, column) | identity(column) }
and order is expression [ ASC | DESC ] [ NULLS FIRST | NULLS LAST ]
and setting is option = { number | string | TRUE | FALSE }""",
    "ALTER TABLE": """\
ALTER TABLE [ IF EXISTS ] table
{ ADD [ COLUMN ] [ IF NOT EXISTS ] path type [ DEFAULT expression ]
| DROP [ COLUMN ] [ IF EXISTS ] path
| RENAME [ COLUMN ] path TO name
| ALTER [ COLUMN ] path [ SET DATA ] TYPE type
| ALTER [ COLUMN ] path { SET DEFAULT expression | DROP DEFAULT | SET NOT NULL | DROP NOT NULL }
| RENAME TO name
| SET PARTITIONED BY ( transform [, …] ) | RESET PARTITIONED BY
| SET SORTED BY ( order [, …] ) | RESET SORTED BY
| SET ( setting [, …] ) | RESET ( option [, …] ) }
where path is { column | column.field }
and transform is { column | year(column) | month(column) | day(column) | hour(column) | bucket(16, column) }
and order is expression [ ASC | DESC ] [ NULLS FIRST | NULLS LAST ]
and setting is option = { number | string | TRUE | FALSE }""",
    "DROP TABLE": "DROP TABLE [ IF EXISTS ] table [ CASCADE | RESTRICT ]",
    "CREATE SCHEMA": "CREATE SCHEMA [ IF NOT EXISTS ] schema",
    "ALTER SCHEMA": "ALTER SCHEMA [ IF EXISTS ] schema RENAME TO name",
    "DROP SCHEMA": "DROP SCHEMA [ IF EXISTS ] schema [ CASCADE | RESTRICT ]",
    "CREATE VIEW": """\
CREATE { VIEW [ IF NOT EXISTS ] | OR REPLACE VIEW } view [ ( column [, …] ) ] AS query""",
    "ALTER VIEW": "ALTER VIEW [ IF EXISTS ] view RENAME TO name",
    "DROP VIEW": "DROP VIEW [ IF EXISTS ] view [ CASCADE | RESTRICT ]",
    "CREATE MACRO": """\
CREATE { MACRO [ IF NOT EXISTS ] | OR REPLACE MACRO } macro
{ ( [ parameter [, …] ] ) AS expression | ( [ parameter [, …] ] ) AS TABLE query }
where parameter is name [ type ]""",
    "DROP MACRO": "DROP MACRO [ TABLE ] [ IF EXISTS ] macro",
    "COMMENT": """\
COMMENT ON { TABLE table | VIEW view | COLUMN table.column | SCHEMA schema | MACRO macro }
IS { string | NULL }""",
    "CREATE INDEX": """\
CREATE INDEX [ IF NOT EXISTS ] name ON table [ USING name ] ( column [, …] )
[ INCLUDE ( column [, …] ) ] [ WITH ( setting [, …] ) ]
where setting is option = { number | string | TRUE | FALSE }""",
    "DROP INDEX": "DROP INDEX [ IF EXISTS ] name [ ON table ]",
    "BEGIN": "{ BEGIN | START } [ TRANSACTION ] [ READ ONLY ]",
    "COMMIT": "{ COMMIT | END } [ TRANSACTION ]",
    "ROLLBACK": "{ ROLLBACK | ABORT } [ TRANSACTION ]",
    "USE": "USE { schema | catalog.schema }",
    "SET SCHEMA": "SET SCHEMA = string",
    "RESET SCHEMA": "RESET SCHEMA",
    "SET VARIABLE": "SET VARIABLE name = expression",
    "RESET VARIABLE": "RESET VARIABLE name",
    "PREPARE": "PREPARE name AS { query | DELETE FROM table WHERE condition }",
    "EXECUTE": "EXECUTE name [ ( expression [, …] ) ]",
    "DEALLOCATE": "DEALLOCATE [ PREPARE ] name",
    "CALL": "CALL function ( [ expression [, …] ] )",
    "CHECKPOINT": "[ FORCE ] CHECKPOINT [ catalog ]",
    "FORK CATALOG": """\
FORK CATALOG [ IF NOT EXISTS ] catalog AS name
[ AT ( { VERSION => number | TIMESTAMP => string } ) ] [ TTL string ]""",
    "MERGE CATALOG": """\
MERGE CATALOG catalog [ INTO catalog ]
[ PREFER { SOURCE | TARGET } ] [ TABLES ( table [, …] ) ] [ DRY RUN ]""",
    "DROP CATALOG": "DROP CATALOG [ IF EXISTS ] catalog",
}
"""By what each is called."""


def found(words: str) -> dict[str, str]:
    """The statements whose names begin with some words, or all for none."""
    wanted = " ".join(words.upper().split())
    return {name: text for name, text in SYNOPSES.items() if name.startswith(wanted)}
