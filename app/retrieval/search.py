"""The whole query path on one screen: analyse, score each list, fuse, cap each page."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

from app.index.snapshot import SearchIndex
from app.models import Hit, SearchResult
from app.retrieval.fusion import fuse
from app.retrieval.query import AnalyzedQuery, analyze
from app.retrieval.synonyms import shipped_synonyms

FloatArray = npt.NDArray[np.float64]

# From a random search on data/eval/official-tune.jsonl (900 draws; the means of the best 25, then
# rounded); the choice between neighbours was made there, the test half only reports.
LIST_WEIGHTS = {
    "words": 1.0,
    "fields": 0.4,
    "grams": 0.3,
    "questions": 1.2,
    "question_grams": 0.5,
}
NAMED_PRODUCT = 1.15
TWIN_PRODUCT = 0.6
NAMED_WEIGHT = 0.4

PARTS = frozenset({*LIST_WEIGHTS, "products", "synonyms", "spelling"})
"""What an evaluation can leave out, to see what it is worth."""


def search(
    index: SearchIndex,
    query: str,
    *,
    top_k: int,
    layer: str | None = None,
    max_per_page: int = 2,
    without: AbstractSet[str] = frozenset(),
) -> SearchResult:
    """Return up to `top_k` hits, best first, at most `max_per_page` from one page.

    A page gets more than `max_per_page` only when nothing else matches. `layer` is the exact name
    of a layer of the set; chunks outside are not ranked at all. `without` names PARTS to leave out.

    Raises:
        InvalidQueryError: The query has nothing to search for.
    """
    analyzed = analyze(query, index.vocabulary, shipped_synonyms(), without=without)
    scores = _score_lists(index, analyzed, without)
    if layer is not None:
        in_layer = index.layer_mask(layer)
        scores = {name: np.where(in_layer, values, 0.0) for name, values in scores.items()}
    fused = fuse(scores, LIST_WEIGHTS)
    if "products" not in without:
        fused *= _product_factor(index, analyzed)
    hits = tuple(
        Hit(
            number=number + 1,
            chunk=index.chunk(number),
            score=float(fused[number]),
            scores={name: float(values[number]) for name, values in scores.items()},
        )
        for number in _rank(index, fused, top_k, max_per_page)
    )
    return SearchResult(hits=hits, matched=bool(hits), terms=frozenset(analyzed.terms))


def explain(index: SearchIndex, query: str) -> Iterator[str]:
    """Yield what the query is searched with: its terms by weight, and the products it names.

    Raises:
        InvalidQueryError: The query has nothing to search for.
    """
    analyzed = analyze(query, index.vocabulary, shipped_synonyms())
    by_weight: defaultdict[float, list[str]] = defaultdict(list)
    for term, weight in analyzed.terms.items():
        by_weight[round(weight, 2)].append(f"{term} ({index.words.frequency(term)})")
    yield "terms by weight, with the number of chunks that hold each; ~ marks stems:"
    for weight, terms in sorted(by_weight.items(), reverse=True):
        yield f"  {weight:.2f}  {', '.join(terms)}"
    named = [
        name
        for group in index.products
        for name in group.pages_of
        if analyzed.terms.get(name, 0.0) >= NAMED_WEIGHT
    ]
    yield f"products named: {', '.join(named) or 'none'}"
    yield f"weights of the lists: {LIST_WEIGHTS}"


def _score_lists(
    index: SearchIndex, analyzed: AnalyzedQuery, without: AbstractSet[str]
) -> dict[str, FloatArray]:
    """Return every chunk's score in each ranked list."""
    scorers: dict[str, Callable[[], FloatArray]] = {
        "words": lambda: index.words.scores(analyzed.terms),
        "fields": lambda: index.fields.scores(analyzed.terms),
        "grams": lambda: index.grams.scores(analyzed.grams),
        "questions": lambda: index.questions.words.scores(analyzed.terms)[index.page_of_chunk],
        "question_grams": lambda: index.questions.grams.scores(analyzed.grams)[index.page_of_chunk],
    }
    return {name: score() for name, score in scorers.items() if name not in without}


def _product_factor(index: SearchIndex, analyzed: AnalyzedQuery) -> FloatArray:
    """Return a factor for each chunk: the products that the query names up, their twins down."""
    by_page = np.ones(len(index.pages))
    for group in index.products:
        named = group.named(lambda name: analyzed.terms.get(name, 0.0) >= NAMED_WEIGHT)
        if named is not None:
            by_page[named] *= NAMED_PRODUCT
            by_page[group.any_product & ~named] *= TWIN_PRODUCT
    return by_page[index.page_of_chunk]


def _rank(index: SearchIndex, fused: FloatArray, top_k: int, max_per_page: int) -> list[int]:
    """Return chunk numbers, best first; equal scores keep chunk order."""
    order = np.argsort(-fused, kind="stable")
    order = order[fused[order] > 0.0]
    taken: Counter[int] = Counter()
    kept: list[int] = []
    spare: list[int] = []
    for number in order.tolist():
        page = int(index.page_of_chunk[number])
        taken[page] += 1
        (kept if taken[page] <= max_per_page else spare).append(number)
        if len(kept) == top_k:
            break
    return (kept + spare)[:top_k]
