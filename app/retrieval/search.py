"""The whole query path on one screen: analyse, score each list, fuse, cap each page."""

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.index.dense import DenseLeg
from app.index.snapshot import SearchIndex
from app.models import Hit, SearchResult
from app.retrieval.abstention import evidence, holds_short_query, matches_well
from app.retrieval.fusion import fuse
from app.retrieval.query import AnalyzedQuery, analyze
from app.retrieval.synonyms import shipped_synonyms

FloatArray = npt.NDArray[np.float64]

# From a random search on data/eval/official-tune.jsonl (1,200 draws), then the neighbour of its
# best region that also does best on starter-tune.jsonl. The test halves only reported. The dense
# ones with multilingual-e5-small on official-tune.jsonl, of 0.3 to 1.0: docs/dense-search.md.
LIST_WEIGHTS = {
    "words": 1.0,
    "fields": 0.6,
    "grams": 0.3,
    "questions": 1.1,
    "question_grams": 0.55,
    "dense": 0.5,
    "dense_questions": 0.5,
}
DENSE_CANDIDATES = 50
# Varied one by one on both tuning halves. REPEATED_PAGE: 0.5 to 0.8 are equal, at 1.0 recall@5 of
# the starter pages falls by 0.01. NAMED_PRODUCT: 1.0 and 1.3 cost 0.004 to 0.008 of MRR@8.
# NAMED_WEIGHT: 0.3 is equal, at 0.6 the MRR falls by 0.004 to 0.009, since a synonym such as
# لاراول then names no product. TWIN_PRODUCT and the candidates change no judged question: they
# keep twins out of the rest of an answer, and bound the sorting.
REPEATED_PAGE = 0.8
_CANDIDATES_PER_HIT = 12
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
    dense: DenseLeg | None = None,
) -> SearchResult:
    """Return up to `top_k` hits, best first, at most `max_per_page` from one page.

    A page gets more than `max_per_page` only when nothing else matches. `layer` is the exact name
    of a layer of the set; chunks outside are not ranked at all. `without` names PARTS to leave out.
    `dense` holds the query's vector, or why a configured encoder gave none.

    Raises:
        InvalidQueryError: The query has nothing to search for.
    """
    dense = dense or DenseLeg()
    ranking = rank_chunks(index, query, layer=layer, without=without, dense=dense)
    numbers = _best(index, ranking.fused, top_k, max_per_page)
    hits = tuple(
        Hit(
            number=number + 1,
            chunk=index.chunk(number),
            score=float(ranking.fused[number]),
            scores={name: float(values[number]) for name, values in ranking.scores.items()},
        )
        for number in numbers
    )
    matched = bool(numbers) and (
        holds_short_query(index, ranking.analyzed, numbers[0])
        or matches_well(weigh(index, ranking), asked=ranking.is_asked)
    )
    terms = frozenset(ranking.analyzed.terms)
    return SearchResult(hits=hits, matched=matched, terms=terms, degraded=dense.degraded)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Every chunk's score for one query: in each list, and fused."""

    analyzed: AnalyzedQuery
    scores: Mapping[str, FloatArray]
    fused: FloatArray

    @property
    def is_asked(self) -> bool:
        """Whether lay questions took part."""
        return "questions" in self.scores


def rank_chunks(
    index: SearchIndex,
    query: str,
    *,
    layer: str | None = None,
    without: AbstractSet[str] = frozenset(),
    dense: DenseLeg | None = None,
) -> Ranking:
    """Score every chunk; see `search`.

    Raises:
        InvalidQueryError: The query has nothing to search for.
    """
    analyzed = analyze(query, index.vocabulary, shipped_synonyms(), without=without)
    scores = _score_lists(index, analyzed, without)
    in_layer = None if layer is None else index.layer_mask(layer)
    if dense is not None:
        lists = _nearest_lists(index, dense, in_layer)
        scores |= {name: values for name, values in lists.items() if name not in without}
    if in_layer is not None:
        scores = {name: np.where(in_layer, values, 0.0) for name, values in scores.items()}
    fused = fuse(scores, LIST_WEIGHTS, len(index))
    if "products" not in without:
        fused = _prefer_named_products(index, analyzed, fused)
    return Ranking(analyzed, scores, fused)


def weigh(index: SearchIndex, ranking: Ranking) -> FloatArray:
    """Return the evidence that the leading chunk answers the query."""
    best = int(ranking.fused.argmax())
    highest = sum(LIST_WEIGHTS[name] for name in ranking.scores)
    agreement = float(ranking.fused[best]) / highest if highest else 0.0
    return evidence(index, ranking.analyzed, ranking.scores, agreement, best)


def _score_lists(
    index: SearchIndex, analyzed: AnalyzedQuery, without: AbstractSet[str]
) -> dict[str, FloatArray]:
    """Return every chunk's score in each ranked list."""
    scorers: dict[str, Callable[[], FloatArray]] = {
        "words": lambda: index.words.scores(analyzed.terms),
        "fields": lambda: index.fields.scores(analyzed.terms),
        "grams": lambda: index.grams.scores(analyzed.grams),
    }
    if len(index.questions):
        pages = index.page_of_chunk
        scorers |= {
            "questions": lambda: index.questions.words.scores(analyzed.terms)[pages],
            "question_grams": lambda: index.questions.grams.scores(analyzed.grams)[pages],
        }
    return {name: score() for name, score in scorers.items() if name not in without}


def _nearest_lists(
    index: SearchIndex, dense: DenseLeg, in_layer: npt.NDArray[np.bool_] | None
) -> dict[str, FloatArray]:
    """Return the lists that vectors give: of the chunks, and of their pages' questions."""
    found = dense.scores(len(index.pages))
    if found is None:
        return {}
    chunks, pages = found
    if in_layer is not None:
        # Chunks of other layers would take the places of the nearest ones.
        chunks = np.where(in_layer, chunks, 0.0)
        inside = np.zeros(len(pages), dtype=np.bool_)
        inside[index.page_of_chunk[in_layer]] = True
        pages = np.where(inside, pages, 0.0)
    lists = {"dense": _nearest(chunks)}
    if len(index.questions):
        lists["dense_questions"] = _nearest(pages)[index.page_of_chunk]
    return lists


def _nearest(cosines: FloatArray, count: int = DENSE_CANDIDATES) -> FloatArray:
    """Return how far each of the nearest chunks is above the first that is not among them."""
    if len(cosines) <= count:
        return np.maximum(cosines, 0.0)
    border = np.partition(cosines, -count - 1)[-count - 1]
    return np.maximum(cosines - max(float(border), 0.0), 0.0)


def named_terms(analyzed: AnalyzedQuery) -> AbstractSet[str]:
    """Return the terms that weigh enough to name a product."""
    return {term for term, weight in analyzed.terms.items() if weight >= NAMED_WEIGHT}


def _prefer_named_products(
    index: SearchIndex, analyzed: AnalyzedQuery, fused: FloatArray
) -> FloatArray:
    """Raise the chunks of the products that the query names, and lower those of their twins."""
    terms = named_terms(analyzed)
    by_page: FloatArray | None = None
    for group in index.products:
        named = group.pages_of_any(terms)
        if named is not None:
            factor = np.where(named, NAMED_PRODUCT, np.where(group.any_product, TWIN_PRODUCT, 1.0))
            by_page = factor if by_page is None else by_page * factor
    return fused if by_page is None else fused * by_page[index.page_of_chunk]


def _best(index: SearchIndex, fused: FloatArray, top_k: int, max_per_page: int) -> list[int]:
    """Return chunk numbers, best first; equal scores keep chunk order."""
    pages = index.page_of_chunk
    taken: Counter[int] = Counter()
    kept: list[tuple[float, int]] = []
    spare: list[int] = []
    for number in _leading(fused, top_k * _CANDIDATES_PER_HIT):
        page = int(pages[number])
        if taken[page] < max_per_page:
            kept.append((-float(fused[number]) * REPEATED_PAGE ** taken[page], number))
        else:
            spare.append(number)
        taken[page] += 1
    numbers = [number for _, number in sorted(kept)]
    return (numbers + spare)[:top_k]


def _leading(scores: FloatArray, count: int) -> list[int]:
    """Return the numbers of the `count` highest scores above 0; equal scores keep their order."""
    numbers = np.flatnonzero(scores > 0.0)
    if len(numbers) > count:
        # Sorting the few that can be among them is much faster than sorting all.
        lowest = np.partition(scores[numbers], -count)[-count]
        numbers = numbers[scores[numbers] >= lowest]
    leading: list[int] = numbers[np.argsort(-scores[numbers], kind="stable")][:count].tolist()
    return leading
