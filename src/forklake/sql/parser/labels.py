"""Names of arguments that are keywords, as in `merge('agent', into => 'shop')`: DuckDB wants quotes."""

from __future__ import annotations

from forklake.sql.parser.keywords import RESERVED
from forklake.sql.parser.reader import Reader


def quoted_labels(text: str) -> str:
    """A text in which keywords before `=>` are in quotes."""
    reader = Reader(text)
    parts, last = list[str](), 0
    while reader.kind != "end":
        start, word, is_keyword = reader.start, reader.token, reader.word in RESERVED
        reader.next()
        if is_keyword and reader.word == "=>":
            parts += [text[last:start], f'"{word}"']
            last = start + len(word)
    return "".join([*parts, text[last:]])
