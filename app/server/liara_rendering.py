"""The answers of validate_liara_json and diagnose_log.

Our own facts stand before the envelope, document text inside; what is repeated of a log or a
file is neutralised as document text is.
"""

from collections.abc import Iterator

from app.liara.diagnosis import Diagnosis
from app.liara.manifest import ManifestReport
from app.liara.manifest_finding import Finding
from app.models import SearchResult
from app.retrieval.grounding import neutralise_line, neutralise_url
from app.server.rendering import (
    SNIPPET_CHARS,
    Corpus,
    assemble,
    degraded_lines,
    excerpt,
    hit_block,
    known_pages,
    page_list,
    source_line,
)

_LINE_CHARS = 500
# Leaves room for the outlook and the list of pages below the cap on every answer.
_FINDINGS_CHARS = 16_000
_MAX_PAGES = 4
_MAX_OTHERS = 4


def manifest_answer(corpus: Corpus, report: ManifestReport) -> str:
    """Return the judgement on a liara.json: a short yes, or each problem with its place."""
    errors = sum(item.severity == "error" for item in report.findings)
    others = len(report.findings) - errors
    verdict = "valid" if report.ok else f"not valid: {_count(errors, 'error')}"
    also = f", {_count(others, 'remark')}" if others else ""
    named = report.platform or "not named in the file"
    lines = [f"This liara.json is {verdict}{also}. Platform: {named}."]
    lines += _finding_lines(report)
    if report.what_happens:
        lines += ["On deploy:", *(f"- {_line(text)}" for text in report.what_happens)]
    pages = known_pages(corpus, [item.page for item in report.findings if item.page])
    pages = list({page.key: page for page in pages}.values())
    lines.append(source_line(corpus))
    if not pages:
        return "\n".join(lines)
    tail = ["read_page(url=…) shows what a page says about a key."]
    return assemble(corpus, [*lines, "Pages in this corpus:"], [page_list(pages)], tail)


def _finding_lines(report: ManifestReport) -> Iterator[str]:
    room = _FINDINGS_CHARS
    for item in report.findings:
        line = _finding_line(item)
        room -= len(line) + 1
        if room < 0:
            break
        yield line
    if room < 0 or report.omitted:
        yield "More was found: mend these first and check again."


def _finding_line(item: Finding) -> str:
    place = f"{item.severity} at {_line(item.json_path)}"
    if item.line is not None:
        place += f" (line {item.line}, column {item.column})"
    text = f"- {place}: {_line(item.problem)}"
    if item.allowed:
        text += f" Allowed: {_line(item.allowed)}"
    url = neutralise_url(item.page) if item.page else None
    return f"{text} Page: {url}" if url else text


def _line(text: str) -> str:
    return neutralise_line(text, _LINE_CHARS)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def diagnosis_answer(corpus: Corpus, diagnosis: Diagnosis, found: SearchResult | None) -> str:
    """Return the root cause of a log, what usually fixes it, and the pages about it."""
    degraded = degraded_lines(found) if found else []
    head = [source_line(corpus), *degraded, *_diagnosis_lines(diagnosis)]
    if not diagnosis.found_error:
        return "\n".join(head)
    hits = found.hits if found is not None and found.matched else ()
    # The part of a page that the search found says more than the page's beginning.
    by_page = {hit.chunk.page: hit for hit in reversed(hits)}
    pages = known_pages(corpus, diagnosis.pages)[:_MAX_PAGES]
    shown = {page.key for page in pages}
    terms = found.terms if found else frozenset()
    blocks = [
        hit_block(by_page[page.key], terms)
        if page.key in by_page
        else excerpt(corpus, page, SNIPPET_CHARS)
        for page in pages
    ]
    others = [hit for hit in hits if hit.chunk.page not in shown][:_MAX_OTHERS]
    blocks += [hit_block(hit, terms) for hit in others]
    if not blocks:
        head.append("No page of this documentation fits. Search with words of your own.")
        return "\n".join(head)
    tail = [
        "read_page(url=…) shows a whole page. Cite the page of what you advise; if the fix changes "
        "liara.json, check it with validate_liara_json."
    ]
    return assemble(corpus, head, blocks, tail)


def _diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.found_error:
        yield (
            "This log shows no error. Send the part around the failure: the end of the build "
            "output, or the app's own log (`liara logs`)."
        )
        return
    yield f"Signature: {_line(diagnosis.signature)}"
    if diagnosis.known:
        yield f"Class: {diagnosis.error_class} ({diagnosis.title})"
    else:
        yield "Class: unknown. No known error fits; the pages below were found by its own words."
    traits = {
        "Phase": diagnosis.phase,
        "Platform": diagnosis.platform,
        "Database": diagnosis.database,
    }
    yield ". ".join(f"{name}: {value or 'not recognised'}" for name, value in traits.items()) + "."
    if diagnosis.fix:
        yield f"What usually fixes it: {diagnosis.fix}"
    if diagnosis.fix_fa:
        yield f"راه‌حل معمول: {diagnosis.fix_fa}"
    if diagnosis.truncated:
        yield "Only the end of the log was read: its last 300 lines, 20,000 characters at most."
