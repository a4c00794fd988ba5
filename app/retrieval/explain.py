"""What a query is searched with, in lines for a person."""

from collections import defaultdict
from collections.abc import Iterator

from app.index.snapshot import SearchIndex
from app.retrieval.abstention import FEATURES
from app.retrieval.search import LIST_WEIGHTS, named_terms, rank_chunks, weigh


def explain(index: SearchIndex, query: str) -> Iterator[str]:
    """Yield the terms of a query by weight, the products it names, and the evidence it found.

    Raises:
        InvalidQueryError: The query has nothing to search for.
    """
    ranking = rank_chunks(index, query)
    analyzed = ranking.analyzed
    by_weight: defaultdict[float, list[str]] = defaultdict(list)
    for term, weight in analyzed.terms.items():
        by_weight[round(weight, 2)].append(f"{term} ({index.words.frequency(term)})")
    yield "terms by weight, with the number of chunks that hold each; ~ marks stems:"
    for weight, terms in sorted(by_weight.items(), reverse=True):
        yield f"  {weight:.2f}  {', '.join(terms)}"
    telling = named_terms(analyzed)
    named = [name for group in index.products for name in group.pages_of if name in telling]
    yield f"products named: {', '.join(named) or 'none'}"
    yield f"weights of the lists: {LIST_WEIGHTS}"
    if not len(index):
        yield "evidence: none, the set is empty"
        return
    features = zip(FEATURES, weigh(index, ranking), strict=True)
    yield "evidence: " + ", ".join(f"{name} {value:.2f}" for name, value in features)
