"""The quality of lay questions: what makes one useless, unfair or copied from the docs."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from app.data_files import data_path
from app.index.analyzer import split_words
from app.index.persian import ZWNJ
from app.index.products import find_products
from app.ingestion.questions_file import read_questions

MIN_PER_PAGE, MAX_PER_PAGE = 5, 8
MIN_CHARS, MAX_CHARS = 8, 140
MAX_PATTERN_SHARE = 0.02
NEARLY_EQUAL = 0.8
_LONG_SENTENCE_LETTERS = 30

# Pages of the official docs that hold nothing to ask about.
EMPTY_PAGES = frozenset({"https://docs.liara.ir/ai/ai-sdk-errors/ai-api-call-error/"})

Questions = Mapping[str, Sequence[str]]


def problems(
    questions: Questions,
    *,
    known_pages: Collection[str],
    empty_pages: Collection[str] = (),
    names: Collection[str] = (),
    judged: Iterable[str] = (),
    corpus: Iterable[str] = (),
) -> Iterator[str]:
    """Yield each fault of `questions`, page by page.

    `empty_pages` hold no text to ask about. `names` are masked before patterns are compared.
    `judged` are queries of evaluation sets, `corpus` the texts of the pages.
    """
    yield from _pages(questions, known_pages, empty_pages)
    yield from _lengths(questions)
    yield from _duplicates(questions)
    yield from _patterns(questions, names)
    yield from _known_from_evaluation(questions, judged)
    yield from _copied(questions, corpus)


def shipped_faults(*, judged: Iterable[str] = (), corpus: Iterable[str] = ()) -> Iterator[str]:
    """Yield each fault of the questions that the program ships for the Liara docs."""
    questions, unreadable = read_questions(data_path("liara", "questions.jsonl"))
    for item in unreadable:
        yield f"{item.path}: {item.reason}"
    pages = data_path("liara", "pages.txt").read_text(encoding="utf-8").split()
    groups = json.loads(data_path("synonyms.json").read_text(encoding="utf-8"))
    yield from problems(
        questions,
        known_pages=pages,
        empty_pages=EMPTY_PAGES,
        names=product_names(pages, groups),
        judged=judged,
        corpus=corpus,
    )


def product_names(pages: Sequence[str], synonym_groups: Iterable[Sequence[str]]) -> set[str]:
    """Return the names of products as single words: from the page paths, in both scripts."""
    names = {name for group in find_products(pages) for name in group.pages_of}
    for group in synonym_groups:
        spellings = {_joined(phrase) for phrase in group}
        if spellings & names:
            names |= spellings
    return names


def corpus_texts(folder: Path) -> Iterator[str]:
    """Read every Markdown file below a folder."""
    for file in sorted(folder.rglob("*.md")):
        yield file.read_text(encoding="utf-8-sig", errors="replace")


def _pages(questions: Questions, known: Collection[str], empty: Collection[str]) -> Iterator[str]:
    for page in sorted(set(known) - set(questions) - set(empty)):
        yield f"{page}: it has no questions"
    for page, asked in questions.items():
        if page not in known:
            yield f"{page}: no such page is known"
        if not MIN_PER_PAGE <= len(asked) <= MAX_PER_PAGE:
            yield f"{page}: {len(asked)} questions, not {MIN_PER_PAGE} to {MAX_PER_PAGE}"


def _lengths(questions: Questions) -> Iterator[str]:
    for page, asked in questions.items():
        for question in asked:
            if not MIN_CHARS <= len(question) <= MAX_CHARS:
                yield f"{page}: {len(question)} characters: {question}"


def _duplicates(questions: Questions) -> Iterator[str]:
    seen: dict[tuple[str, ...], str] = {}
    for page, question in _all(questions):
        key = tuple(_words(question))
        if key in seen:
            yield f"{page}: also asked for {seen[key]}: {question}"
        seen.setdefault(key, page)


def _patterns(questions: Questions, names: Collection[str]) -> Iterator[str]:
    patterns = Counter(_pattern(question, names) for _, question in _all(questions))
    shared = {pattern: count for pattern, count in patterns.items() if count > 1}
    share = sum(shared.values()) / max(1, patterns.total())
    if share > MAX_PATTERN_SHARE:
        yield f"{share:.1%} of the questions share a pattern, more than {MAX_PATTERN_SHARE:.0%}:"
        for pattern, count in sorted(shared.items(), key=lambda item: -item[1])[:20]:
            yield f"  {count} times: {' '.join(pattern)}"


def _pattern(question: str, names: Collection[str]) -> tuple[str, ...]:
    masked: list[str] = []
    for word in _words(question):
        shown = "…" if word in names or word.isdigit() else word
        if shown != "…" or masked[-1:] != ["…"]:
            masked.append(shown)
    return tuple(masked)


def _known_from_evaluation(questions: Questions, judged: Iterable[str]) -> Iterator[str]:
    by_word: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
    for query in judged:
        words = frozenset(_words(query))
        for word in words:
            by_word[word].append(words)
    for page, question in _all(questions):
        words = frozenset(_words(question))
        candidates = {other for word in words for other in by_word.get(word, ())}
        if any(len(words & other) >= NEARLY_EQUAL * len(words | other) for other in candidates):
            yield f"{page}: an evaluation set asks nearly the same: {question}"


def _copied(questions: Questions, corpus: Iterable[str]) -> Iterator[str]:
    lines = {_folded(line) for text in corpus for line in text.splitlines()}
    for page, question in _all(questions):
        folded = _folded(question)
        if sum(map(str.isalpha, folded)) >= _LONG_SENTENCE_LETTERS and folded in lines:
            yield f"{page}: a line of the docs: {question}"


def _all(questions: Questions) -> Iterator[tuple[str, str]]:
    for page, asked in questions.items():
        for question in asked:
            yield page, question


def _words(text: str) -> list[str]:
    return [_joined(word) for word in split_words(text)]


def _joined(text: str) -> str:
    return re.sub(rf"[\s._\-{ZWNJ}]", "", text.casefold())


def _folded(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip(" \t-*>#|`.،؛:؟?")
