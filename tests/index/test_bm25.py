from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from app.errors import SnapshotError
from app.index.analyzer import grams, split_words, term_texts, tokenize, tokenize_grams
from app.index.bm25 import BM25, SMALL_CORPUS
from app.index.forward import WordCounter

WORDS = st.sampled_from("disk دیسک liara.json healthCheck می‌خواهم node18 build a the 你好".split())
TEXTS = st.lists(st.lists(WORDS, max_size=30).map(" ".join), min_size=SMALL_CORPUS, max_size=40)


def word_list(texts: list[str]) -> BM25:
    counter = WordCounter()
    for text in texts:
        counter.add(text)
    counted = counter.finish().count_terms(term_texts)
    return BM25.from_counts(*counted, len(texts))


def gram_list(texts: list[str]) -> BM25:
    counter = WordCounter()
    for text in texts:
        counter.add(text)
    return BM25.from_counts(*counter.finish().count_terms(grams), len(texts))


@given(TEXTS, st.lists(WORDS, min_size=1, max_size=8).map(" ".join))
@settings(deadline=None)
def test_scores_equal_rank_bm25_on_the_same_tokens(texts: list[str], query: str) -> None:
    if not any(split_words(text) for text in texts):
        return
    for ranked, tokens in ((word_list, tokenize), (gram_list, tokenize_grams)):
        oracle = BM25Okapi([tokens(text) for text in texts])
        scores = ranked(texts).scores(Counter(tokens(query)))
        assert np.abs(scores - oracle.get_scores(tokens(query))).max() < 1e-9


def test_scores_equal_rank_bm25_on_the_starter_corpus(starter_texts: list[str]) -> None:
    oracle = BM25Okapi([tokenize(text) for text in starter_texts])
    ranked = word_list(starter_texts)
    for query in ("دیسک و فایل‌های آپلود شده", "liara.json healthCheck port", "database connection"):
        tokens = tokenize(query)
        difference = ranked.scores(Counter(tokens)) - oracle.get_scores(tokens)
        assert np.abs(difference).max() < 1e-9


@pytest.mark.parametrize("size", range(1, SMALL_CORPUS + 2))
def test_a_matching_document_leads_in_a_corpus_of_any_size(size: int) -> None:
    ranked = word_list(["disk build"] + ["node build"] * (size - 1))
    scores = ranked.scores({"disk": 1.0})
    assert scores[0] > 0
    assert scores[0] > max(scores[1:], default=0.0)


def test_an_unknown_term_scores_nothing() -> None:
    assert word_list(["disk build", "node"]).scores({"zzz": 1.0}).tolist() == [0.0, 0.0]


def test_a_loaded_list_scores_as_the_saved_one(tmp_path: Path) -> None:
    ranked = word_list(["disk build disk", "node disk", ""])
    ranked.save(tmp_path, "words")
    loaded = BM25.load(tmp_path, "words", 3)
    assert loaded.scores({"disk": 1.0}).tolist() == ranked.scores({"disk": 1.0}).tolist()
    assert loaded.frequency("disk") == 2


def test_a_damaged_list_is_refused(tmp_path: Path) -> None:
    word_list(["disk"]).save(tmp_path, "words")
    (tmp_path / "words.weights.npy").write_bytes(b"not an array")
    with pytest.raises(SnapshotError):
        BM25.load(tmp_path, "words", 1)
