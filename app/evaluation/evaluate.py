"""The evaluation of one index: a table, its misses, and a second configuration beside it."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from app.errors import InvalidArgumentError
from app.evaluation.baseline import BaselineSearch
from app.evaluation.judged import JudgedQuestion
from app.evaluation.report import comparison_lines, miss_lines, run, summary_lines
from app.index.dense import DenseLeg
from app.index.snapshot import SearchIndex
from app.retrieval.search import PARTS, search


def evaluate(
    index: SearchIndex,
    questions: Sequence[JudgedQuestion],
    *,
    top_k: int = 8,
    baseline: bool = False,
    without: AbstractSet[str] = frozenset(),
    misses: bool = False,
    legs: Mapping[str, DenseLeg] | None = None,
) -> Iterator[str]:
    """Yield the report on `questions`: ours, and beside it the baseline or ours without parts.

    Questions without a right page are counted as refused or answered, not ranked. `legs` holds
    what dense search adds to each query.

    Raises:
        InvalidArgumentError: `without` names something that is no part, or there is no question.
    """
    legs = legs or {}
    unknown = sorted(without - PARTS)
    if unknown:
        raise InvalidArgumentError(
            f"No part is called {', '.join(unknown)}: the parts are {', '.join(sorted(PARTS))}."
        )
    answerable = [question for question in questions if question.gold]
    unanswerable = [question for question in questions if not question.gold]
    if not questions:
        raise InvalidArgumentError("The file holds no question.")
    yield from _refusals(index, answerable, unanswerable, legs)
    if not answerable:
        return
    ours = run(answerable, lambda query, count: _pages(index, query, count, legs), top_k)
    yield from summary_lines("ours", ours)
    if without:
        name = "without"
        other = run(answerable, lambda q, count: _pages(index, q, count, legs, without), top_k)
        yield from ("", *summary_lines(name, other), "")
        yield from comparison_lines("ours", ours, name, other)
    if baseline:
        other = run(answerable, BaselineSearch(index).pages, top_k)
        yield from ("", *summary_lines("baseline", other), "")
        yield from comparison_lines("ours", ours, "baseline", other)
    if misses:
        yield from ("", "Not among the first five:", *miss_lines(ours))


def _pages(
    index: SearchIndex,
    query: str,
    top_k: int,
    legs: Mapping[str, DenseLeg],
    without: AbstractSet[str] = frozenset(),
) -> list[str]:
    found = search(index, query, top_k=top_k, without=without, dense=legs.get(query))
    return [hit.chunk.page for hit in found.hits]


def _refusals(
    index: SearchIndex,
    answerable: Sequence[JudgedQuestion],
    unanswerable: Sequence[JudgedQuestion],
    legs: Mapping[str, DenseLeg],
) -> Iterator[str]:
    for label, group in (("answerable", answerable), ("unanswerable", unanswerable)):
        if group:
            found = (
                search(index, item.query, top_k=1, dense=legs.get(item.query)) for item in group
            )
            refused = sum(not result.matched for result in found)
            share = refused / len(group)
            yield f"{label}: {refused} of {len(group)} said to match nothing well ({share:.1%})"
