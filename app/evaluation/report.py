"""Runs judged questions and writes down what came of it."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.evaluation.judged import JudgedQuestion, page_key
from app.evaluation.measures import (
    CUTOFFS,
    MRR_CUTOFF,
    Interval,
    Rank,
    bootstrap,
    hits_at,
    rank_of_gold,
    reciprocal_ranks,
)

PageSearch = Callable[[str, int], Sequence[str]]
"""Takes a query and the number of chunks; gives the pages of the chunks, best first."""

_MISSED_BEYOND = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question got: the rank of its first right page, the pages, and the time."""

    question: JudgedQuestion
    rank: Rank
    pages: tuple[str, ...]
    milliseconds: float


def run(questions: Iterable[JudgedQuestion], search: PageSearch, top_k: int) -> list[Outcome]:
    """Ask every question once, in order."""
    outcomes = []
    for question in questions:
        started = time.perf_counter()
        found = search(question.query, top_k)
        elapsed = (time.perf_counter() - started) * 1000
        pages = tuple(dict.fromkeys(page_key(page) for page in found))
        outcomes.append(Outcome(question, rank_of_gold(pages, question.gold), pages, elapsed))
    return outcomes


def summary_lines(name: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a table: a row for each style, each language, and all with intervals."""
    header = " ".join(f"{'r@' + str(cutoff):>6s}" for cutoff in CUTOFFS)
    yield f"{name:14s} {'n':>4s} {header} {'MRR@' + str(MRR_CUTOFF):>6s}"
    for group in ("style", "lang"):
        groups: defaultdict[str, list[Rank]] = defaultdict(list)
        for outcome in outcomes:
            groups[getattr(outcome.question, group)].append(outcome.rank)
        for label, ranks in sorted(groups.items()):
            yield _row(label, ranks)
    ranks = [outcome.rank for outcome in outcomes]
    yield _row("ALL", ranks)
    recall, mrr = bootstrap(hits_at(ranks, 5)), bootstrap(reciprocal_ranks(ranks))
    yield f"95 % intervals: recall@5 {_interval(recall)}, MRR@{MRR_CUTOFF} {_interval(mrr)}"
    times = sorted(outcome.milliseconds for outcome in outcomes)
    slow = times[max(0, int(len(times) * 0.95) - 1)]
    yield f"latency ms: median {statistics.median(times):.2f}, p95 {slow:.2f}"


def comparison_lines(
    left_name: str, left: Sequence[Outcome], right_name: str, right: Sequence[Outcome]
) -> Iterator[str]:
    """Yield how two runs over the same questions differ, question by question."""
    left_ranks = [outcome.rank for outcome in left]
    right_ranks = [outcome.rank for outcome in right]
    for label, difference in (
        ("recall@5", hits_at(left_ranks, 5) - hits_at(right_ranks, 5)),
        (f"MRR@{MRR_CUTOFF}", reciprocal_ranks(left_ranks) - reciprocal_ranks(right_ranks)),
    ):
        yield f"{label}: {left_name} minus {right_name} {_interval(bootstrap(difference))}"
    for ours, theirs in zip(left, right, strict=True):
        if (ours.rank or 99) != (theirs.rank or 99):
            better = left_name if (ours.rank or 99) < (theirs.rank or 99) else right_name
            yield (
                f"{better:>10s} better: {left_name} {ours.rank}, {right_name} {theirs.rank}"
                f" - {ours.question.id} {ours.question.query}"
            )


def miss_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the questions whose right page is not among the first five."""
    for outcome in outcomes:
        if outcome.rank is None or outcome.rank > _MISSED_BEYOND:
            question = outcome.question
            yield f"- {question.id} [{question.style}] rank {outcome.rank}: {question.query}"
            yield f"    right {', '.join(question.gold[:3])}"
            yield f"    found {', '.join(outcome.pages[:3])}"


def _row(label: str, ranks: Sequence[Rank]) -> str:
    recalls = " ".join(f"{hits_at(ranks, cutoff).mean():6.3f}" for cutoff in CUTOFFS)
    return f"{label:14s} {len(ranks):4d} {recalls} {reciprocal_ranks(ranks).mean():6.3f}"


def _interval(interval: Interval) -> str:
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
