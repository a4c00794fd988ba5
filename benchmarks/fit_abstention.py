"""Fits the abstention model on the tuning questions and reports it on the test questions.

Needs the official docs in LIARA_CORPUS. Prints the constants of app/retrieval/abstention.py, for
document sets with lay questions and for those without.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.data_files import data_path
from app.evaluation.judged import read_judged
from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.liara.corpus import LIARA_SPEC
from app.retrieval.abstention import FEATURES
from app.retrieval.search import rank_chunks, weigh

FloatArray = npt.NDArray[np.float64]

WITH_QUESTIONS = tuple(name for name in FEATURES if name not in {"word_share", "field_share"})
# Without questions the sizes of document sets differ most: only features that are shares.
WITHOUT_QUESTIONS = ("unmatched", "length", "word_share", "field_share", "agreement")
QUESTION_LISTS = frozenset({"questions", "question_grams"})
REFUSED_SHARE = {True: 0.02, False: 0.01}
_STEPS, _RATE, _PENALTY = 6_000, 1.0, 0.01


@dataclass(frozen=True, slots=True)
class Fitted:
    """A linear score in the raw features, 0 at the threshold."""

    names: tuple[str, ...]
    weights: FloatArray
    bias: float

    def refuses(self, features: FloatArray) -> FloatArray:
        """Return which rows are refused."""
        columns = [FEATURES.index(name) for name in self.names]
        return features[:, columns] @ self.weights + self.bias < 0


def main() -> None:
    """Fit both models, print their constants and how they do."""
    indexes = {"official": build(os.environ["LIARA_CORPUS"]), "starter": build(None)}
    for with_questions in (True, False):
        without = frozenset() if with_questions else QUESTION_LISTS
        rows = {
            (corpus, half, kind): features(index, f"{name}-{half}", without)
            for corpus, index in indexes.items()
            for half in ("tune", "test")
            for kind, name in (("answerable", corpus), ("unanswerable", "abstain"))
        }
        names = WITH_QUESTIONS if with_questions else WITHOUT_QUESTIONS
        answerable = stack(rows, "tune", "answerable")
        unanswerable = stack(rows, "tune", "unanswerable")
        model = fit(names, answerable, unanswerable, REFUSED_SHARE[with_questions])
        print(f"with questions: {with_questions}")
        print("   ", {n: round(float(w), 3) for n, w in zip(names, model.weights, strict=True)})
        print(f"    bias {model.bias:.3f}")
        for (corpus, half, kind), values in rows.items():
            print(f"    {corpus} {half} {kind}: {model.refuses(values).mean():.3f} refused")


def build(source: str | None) -> SearchIndex:
    """Build the index of the official docs, or of the starter pages."""
    starter = replace(LIARA_SPEC, source=str(data_path("starter")), include=("**/*.md",))
    spec = replace(LIARA_SPEC, source=source) if source else starter
    with tempfile.TemporaryDirectory() as scratch:
        return ingest(spec, Path(scratch))


def features(index: SearchIndex, name: str, without: frozenset[str]) -> FloatArray:
    """Return the evidence of every question of a file of data/eval, a row each."""
    questions = read_judged(data_path("eval", f"{name}.jsonl"))
    return np.array(
        [
            weigh(index, rank_chunks(index, question.query, without=without))
            for question in questions
        ]
    )


def stack(rows: dict[tuple[str, str, str], FloatArray], half: str, kind: str) -> FloatArray:
    """Return the rows of both corpora, each corpus repeated to the same size."""
    parts = [values for key, values in rows.items() if key[1:] == (half, kind)]
    size = max(len(part) for part in parts)
    return np.vstack([np.resize(part, (size, part.shape[1])) for part in parts])


def fit(
    names: Sequence[str], answerable: FloatArray, unanswerable: FloatArray, refused: float
) -> Fitted:
    """Fit a penalised logistic regression and place its threshold at a share of `answerable`."""
    columns = [FEATURES.index(name) for name in names]
    rows = np.vstack([answerable, unanswerable])[:, columns]
    labels = np.concatenate([np.ones(len(answerable)), np.zeros(len(unanswerable))])
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    scaled = (rows - mean) / spread
    share = np.where(labels == 1, 0.5 / len(answerable), 0.5 / len(unanswerable))
    weights, bias = np.zeros(len(columns)), 0.0
    for _ in range(_STEPS):
        error = (1 / (1 + np.exp(-(scaled @ weights + bias))) - labels) * share
        weights -= _RATE * (scaled.T @ error + _PENALTY * weights)
        bias -= _RATE * error.sum()
    raw = weights / spread
    scores = answerable[:, columns] @ raw
    return Fitted(tuple(names), raw, -float(np.quantile(scores, refused)))


if __name__ == "__main__":
    main()
