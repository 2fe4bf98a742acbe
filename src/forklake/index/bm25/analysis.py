"""How text becomes words: what an index of words is told, and the analyzer of tantivy that does it."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from typing import Any

from forklake.errors import InvalidIndex
from forklake.extras import missing
from forklake.index.parameters import Known, flag, one_of, optional, whole
from forklake.lazy.tantivy import tantivy
from forklake.model.index import Parameter, Parameters

TANTIVY = "0.27.0"
"""Exactly this one: how it keeps its metadata is not documented."""

TOKENIZERS = ("simple", "whitespace", "ngram", "raw")
# fmt: off
LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian",
    "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
)
# fmt: on
_LONGEST = 255

PARAMETERS = Known(
    "bm25",
    {
        "tokenizer": ("simple", f"one of {', '.join(TOKENIZERS)}", one_of(TOKENIZERS)),
        "language": (None, f"one of {', '.join(LANGUAGES)}, or None", optional(one_of(LANGUAGES))),
        "stop_words": (False, "true to leave out the most common words of the language", flag),
        "fold_accents": (True, "true if é is found as e", flag),
        "min_gram": (3, "how many letters an n-gram has at least", whole(1, 20)),
        "max_gram": (3, "how many letters an n-gram has at most", whole(1, 20)),
    },
)


def require_tantivy() -> None:
    """Raise `MissingDependency` without tantivy, or with another version of it."""
    try:
        found = index_format() and version("tantivy")
    except ModuleNotFoundError:
        raise missing("indexes of words need tantivy, which is not installed", "text") from None
    if found != TANTIVY:
        raise missing(f"indexes of words need tantivy {TANTIVY}, and {found} is installed", "text")


def index_format() -> str:
    """What tantivy says of the format of its files."""
    # Its types lack this.
    module: Any = tantivy
    return module.__version__.rpartition(" ")[2]


def checked(given: Parameters) -> dict[str, Parameter]:
    """The parameters, completed; `InvalidIndex` for what cannot be."""
    for name in ("k1", "b"):
        if name in given:
            raise InvalidIndex(
                f"{name} of bm25 cannot be chosen: it is always {1.2 if name == 'k1' else 0.75}"
            )
    params = PARAMETERS.complete(given)
    language = params["language"]
    if params["stop_words"] and language is None:
        raise InvalidIndex("stop_words of bm25 needs a language, such as language='english'")
    if params["tokenizer"] in ("ngram", "raw") and language is not None:
        raise InvalidIndex(f"the tokenizer {params['tokenizer']} makes no words: it has no language")
    if int(str(params["min_gram"])) > int(str(params["max_gram"])):
        raise InvalidIndex("min_gram of bm25 is not above max_gram")
    try:
        analyzer_of(params)
    except ValueError as error:
        raise InvalidIndex(f"bm25 cannot leave out stop words of {language}: {error}") from error
    return params


def analyzer_of(params: Parameters) -> tantivy.TextAnalyzer:
    """What makes words of text."""
    return _analyzer(tuple(sorted(params.items())))


@lru_cache(maxsize=64)
def _analyzer(items: tuple[tuple[str, Parameter], ...]) -> tantivy.TextAnalyzer:
    params = dict(items)
    filters = tantivy.Filter
    builder = tantivy.TextAnalyzerBuilder(_tokenizer(params))
    if params["tokenizer"] != "raw":
        builder = builder.filter(filters.remove_long(_LONGEST)).filter(filters.lowercase())
    language = params["language"]
    if language is not None:
        if params["stop_words"]:
            builder = builder.filter(filters.stopword(str(language)))
        builder = builder.filter(filters.stemmer(str(language)))
    # Last: stemmers and stop words know their language with its accents.
    if params["fold_accents"] and params["tokenizer"] != "raw":
        builder = builder.filter(filters.ascii_fold())
    return builder.build()


def _tokenizer(params: Parameters) -> tantivy.Tokenizer:
    match params["tokenizer"]:
        case "whitespace":
            return tantivy.Tokenizer.whitespace()
        case "ngram":
            return tantivy.Tokenizer.ngram(int(str(params["min_gram"])), int(str(params["max_gram"])))
        case "raw":
            return tantivy.Tokenizer.raw()
        case _:
            return tantivy.Tokenizer.simple()


def unstemmed(params: Parameters) -> tantivy.TextAnalyzer:
    """The same without what a language adds: for beginnings of words, which have no stem."""
    return analyzer_of({**params, "language": None, "stop_words": False})
