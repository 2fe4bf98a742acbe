"""A query as a tree becomes one of tantivy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forklake.index.bm25.analysis import analyzer_of, unstemmed
from forklake.index.bm25.syntax import Boost, Everything, Occurs, Text, Tree
from forklake.lazy.tantivy import tantivy
from forklake.model.index import Parameters

_Word = tuple[int, str]
"""A word and its place among the others: a stop word between two leaves a gap."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a query is made for."""

    schema: tantivy.Schema
    fields: Mapping[str, str]
    """Those of tantivy by name of their column, in small letters."""
    params: Parameters

    def query(self, tree: Tree) -> tantivy.Query | None:
        """A query of tantivy; None if no word is left of it, as where all are stop words."""
        match tree:
            case Text():
                return self._text(tree)
            case Everything():
                return tantivy.Query.all_query()
            case Boost(part, factor):
                query = self.query(part)
                return None if query is None else tantivy.Query.boost_query(query, factor)
            case _:
                parts: list[tuple[Occurs, tantivy.Query | None]] = [
                    (occurs, self.query(part)) for occurs, part in tree.parts
                ]
                left: list[tuple[Occurs, tantivy.Query]] = [
                    (occurs, query) for occurs, query in parts if query is not None
                ]
                # Of what is only left out, nothing is found.
                return _joined(left) if any(occurs != "must not" for occurs, _ in left) else None

    def _text(self, text: Text) -> tantivy.Query | None:
        fields = (
            tuple(self.fields.values()) if text.column is None else (self.fields[text.column.casefold()],)
        )
        queries = [query for field in fields if (query := self._in_field(text, field)) is not None]
        return _joined([("may", query) for query in queries])

    def _in_field(self, text: Text, field: str) -> tantivy.Query | None:
        words = self._words(text.text)
        if self.params["tokenizer"] == "ngram":
            # N-grams of a text overlap and have no order: a row with all of them has it, as a rule.
            return _joined(
                [("must", self._word(field, word)) for word in sorted({word for _, word in words})]
            )
        if text.prefix:
            return self._prefix(text, field)
        if not words:
            return None
        if len(words) == 1:
            return self._word(field, words[0][1])
        return tantivy.Query.phrase_query(self.schema, field, list(words), text.slop)

    def _words(self, text: str) -> list[_Word]:
        found = analyzer_of(self.params).pre_tokenize(text).tokens
        first = found[0].position if found else 0
        return [(token.position - first, token.text) for token in found]

    def _word(self, field: str, word: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, field, word)

    def _prefix(self, text: Text, field: str) -> tantivy.Query | None:
        typed = unstemmed(self.params).pre_tokenize(text.text).tokens
        if not typed:
            return None
        last = typed[-1].text
        stems = analyzer_of(self.params).pre_tokenize(text.text).tokens
        # Rows have the stem of a word, which may be shorter than the beginning that was typed.
        choices = [f"{_escaped(last)}.*"]
        if stems and stems[-1].text != last:
            choices.append(_escaped(stems[-1].text))
        pattern = f"({'|'.join(choices)})" if len(choices) > 1 else choices[0]
        before = analyzer_of(self.params).pre_tokenize(text.text[: typed[-1].char_offset_from]).tokens
        if not before:
            return tantivy.Query.regex_query(self.schema, field, pattern)
        first = before[0].position
        words: list[str | _Word] = [(word.position - first, _escaped(word.text)) for word in before]
        words.append((typed[-1].position - first, pattern))
        return tantivy.Query.regex_phrase_query(self.schema, field, words, text.slop)


def _joined(parts: Sequence[tuple[Occurs, tantivy.Query]]) -> tantivy.Query | None:
    if not parts:
        return None
    if len(parts) == 1 and parts[0][0] != "must not":
        return parts[0][1]
    occur = tantivy.Occur
    names = {"may": occur.Should, "must": occur.Must, "must not": occur.MustNot}
    return tantivy.Query.boolean_query([(names[occurs], query) for occurs, query in parts])


def _escaped(word: str) -> str:
    """A word as a regular expression of tantivy, which gives letters outside of ASCII no meaning."""
    return re.sub(r"([\\.+*?()|\[\]{}^$#&\-~/])", r"\\\1", word)
