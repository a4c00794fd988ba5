from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import SnapshotError
from app.index.analyzer import grams, split_words, tokenize_grams
from app.index.forward import TermCounts, WordCounter, WordCounts, add_counts

TEXTS = st.lists(st.text(alphabet="ab دی۱数.-", max_size=30), max_size=8)


def counted(texts: list[str]) -> WordCounts:
    counter = WordCounter()
    for text in texts:
        counter.add(text)
    return counter.finish()


def as_counters(terms: list[str], counts: TermCounts, size: int) -> list[Counter[str]]:
    found = [Counter[str]() for _ in range(size)]
    for text, row, count in zip(*(part.tolist() for part in counts), strict=True):
        found[text][terms[row]] += count
    return found


@given(TEXTS)
def test_words_are_counted_text_by_text(texts: list[str]) -> None:
    terms, counts = counted(texts).count_terms(lambda word: [word])
    assert as_counters(terms, counts, len(texts)) == [Counter(split_words(text)) for text in texts]


@given(TEXTS)
def test_terms_of_words_are_counted_as_often_as_they_occur(texts: list[str]) -> None:
    terms, counts = counted(texts).count_terms(grams)
    expected = [Counter(tokenize_grams(text)) for text in texts]
    assert as_counters(terms, counts, len(texts)) == expected


@given(TEXTS)
def test_each_pair_of_text_and_term_is_named_once_in_order(texts: list[str]) -> None:
    _, counts = counted(texts).count_terms(grams)
    pairs = list(zip(counts.texts.tolist(), counts.rows.tolist(), strict=True))
    assert pairs == sorted(set(pairs))


@given(TEXTS, st.integers(1, 6))
def test_the_size_of_the_blocks_does_not_show(texts: list[str], block_words: int) -> None:
    words = counted(texts)
    terms, counts = words.count_terms(grams, block_words=block_words)
    all_terms, at_once = words.count_terms(grams)
    assert terms == all_terms
    assert [part.tolist() for part in counts] == [part.tolist() for part in at_once]


@given(TEXTS, TEXTS)
def test_counts_that_are_taken_over_equal_those_counted_anew(
    old: list[str], new: list[str]
) -> None:
    earlier = counted(["other words first", *old])
    counter = WordCounter()
    counter.reuse(earlier, range(1, len(old) + 1))
    for text in new:
        counter.add(text)
    terms, counts = counter.finish().count_terms(lambda word: [word])
    expected = [Counter(split_words(text)) for text in (*old, *new)]
    assert as_counters(terms, counts, len(expected)) == expected


@given(TEXTS)
def test_counts_are_added(texts: list[str]) -> None:
    terms, counts = counted(texts).count_terms(grams)
    doubled = add_counts(counts, counts, len(terms))
    once = as_counters(terms, counts, len(texts))
    assert as_counters(terms, doubled, len(texts)) == [counter + counter for counter in once]


def test_no_text_has_no_words() -> None:
    nothing = counted([])
    assert len(nothing) == 0
    assert nothing.count_terms(grams)[0] == []


def test_counts_come_back_from_the_disk(tmp_path: Path) -> None:
    words = counted(["دیسک disk disk", "", "数据 disk"])
    words.save(tmp_path, "body")
    loaded = WordCounts.load(tmp_path, "body")
    left, right = (item.count_terms(lambda word: [word]) for item in (words, loaded))
    assert as_counters(*left, 3) == as_counters(*right, 3)
    (tmp_path / "body.ids.npy").unlink()
    with pytest.raises(SnapshotError):
        WordCounts.load(tmp_path, "body")
