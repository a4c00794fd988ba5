"""What the person meant: the weighted terms that a query is searched with."""

from dataclasses import dataclass

from app.errors import InvalidQueryError
from app.index.analyzer import Form, expand, grams, split_words
from app.retrieval.stopwords import STOPWORDS

FORM_WEIGHTS = {Form.EXACT: 1.0, Form.PART: 0.6, Form.STEM: 0.6}
STOPWORD_WEIGHT = 0.1


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """Weighted terms for the word lists and for the gram list."""

    terms: dict[str, float]
    grams: dict[str, float]


def analyze(query: str) -> AnalyzedQuery:
    """Analyse a query as the index analyses text; equal terms keep their highest weight.

    Raises:
        InvalidQueryError: It has no letter or digit to search for.
    """
    words = split_words(query)
    if not words:
        raise InvalidQueryError("The query has no letters or digits to search for: add words.")
    terms: dict[str, float] = {}
    gram_terms: dict[str, float] = {}
    for word in words:
        is_stopword = word.casefold() in STOPWORDS
        weight = STOPWORD_WEIGHT if is_stopword else 1.0
        for term in expand(word):
            value = weight * FORM_WEIGHTS[term.form]
            terms[term.text] = max(terms.get(term.text, 0.0), value)
        if not is_stopword:
            gram_terms.update(dict.fromkeys(grams(word), 1.0))
    return AnalyzedQuery(terms, gram_terms)
