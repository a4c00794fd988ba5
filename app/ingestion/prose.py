"""Prose as a reader sees it: JSX and HTML tags go, their text stays, code is never touched.

Every function keeps the number of lines, so that line numbers stay those of the source file.
"""

import re
from collections.abc import Iterator

# Python before 3.11.5 mismatches possessive groups that hold alternatives: only character classes
# are possessive here, and no two ways lead to one match, so that nothing backtracks for long.
_VALUE = r"""(?:"[^"<]*+"|'[^'<]*+'|\{[^{}<]*+(?:\{[^{}<]*+\}[^{}<]*+)*+\}|[^\s"'<>=`{}]++)"""
_ATTRIBUTE = rf"\s++[\w:@.-]++(?:={_VALUE})?"
# No part may hold `<`, so that each attempt ends at the next tag: linear on hostile text.
_COMPONENT = re.compile(rf"(?:</|(?<![\w<])<)([A-Z][\w.]*+)((?:{_ATTRIBUTE})*)\s*+(/?+)>")
_COMPONENT_CLOSING = re.compile(r"</([A-Z][\w.]*+)\s*+>")
_HTML_TAGS = (
    "a article aside b big br center dd details div dl dt em figcaption figure font footer "
    "h1 h2 h3 h4 h5 h6 header hr i iframe kbd li main mark nav ol p picture section small source "
    "span strong sub summary sup table tbody td tfoot th thead tr u ul video"
)
_HTML = re.compile(rf"</?+(?:{'|'.join(_HTML_TAGS.split())})(?:{_ATTRIBUTE})*\s*+/?+>", re.I)
_SPACED = re.compile(r"</?+(?:br|td|th|li|p|div|tr)\b", re.I)
_LINK = re.compile(rf"<a((?:{_ATTRIBUTE})+)\s*+>([^<>\[\]\n]{{0,300}}+)</a\s*+>", re.I)
_IMAGE = re.compile(rf"<img((?:{_ATTRIBUTE})+)\s*+/?+>", re.I)
_TEXT_ATTRIBUTE = re.compile(
    r"""\s(title|label|alt|src|href)=(?:"([^"<]*)"|'([^'<]*)'|\{["'`]([^"'`<]*)["'`]\})"""
)
_IMPORT = re.compile(
    r"""^import\s(?:[\w$*{},\s]{1,500}?\sfrom\s{1,20})?\s{0,20}['"][^'"\n]{1,300}['"];?[ \t]*$""",
    re.M,
)
_EXPORT = re.compile(
    r"^export (?:default\b|async function\b|function\b|class\b|(?:const|let|var) [\w$]+ ?[=:]|[{*])"
)
_LEFTOVER = re.compile(r"^[ \t]*(?:\{[\w.$]{1,80}\}|</?>|\{\{[^{}\n]{1,80}\}\})[ \t]*$", re.M)
_BACKTICKS = re.compile(r"`+")


def closed_components(text: str) -> frozenset[str]:
    """Return the components that have a closing tag: a lone `<Key>` is a placeholder."""
    return frozenset(match.group(1) for match in _COMPONENT_CLOSING.finditer(text))


def clean_prose(text: str, closed: frozenset[str]) -> str:
    """Drop tags, comments and module lines from a run of prose lines."""
    if not any(mark in text for mark in ("<", "{", "import ", "export ")):
        return text
    paragraphs = re.split(r"(\n[ \t]*\n)", _without_comments(text))
    return "".join(_clean_paragraph(paragraph, closed) for paragraph in paragraphs)


def split_code_spans(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a paragraph, each with whether it is an inline code span."""
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    closing = _next_of_same_length(runs)
    done = index = 0
    while index < len(runs):
        end = closing[index]
        if end is None:
            index += 1
            continue
        yield text[done : runs[index][0]], False
        yield text[runs[index][0] : runs[end][1]], True
        done = runs[end][1]
        index = end + 1
    yield text[done:], False


def _next_of_same_length(runs: list[tuple[int, int]]) -> list[int | None]:
    following: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        following[index] = latest.get(length)
        latest[length] = index
    return following


def _clean_paragraph(paragraph: str, closed: frozenset[str]) -> str:
    if _EXPORT.match(paragraph):
        return _blank(paragraph)
    if "import " in paragraph:
        paragraph = _IMPORT.sub(lambda match: _blank(match.group()), paragraph)
    if "{" in paragraph or "<>" in paragraph or "</>" in paragraph:
        paragraph = _LEFTOVER.sub("", paragraph)
    if "<" not in paragraph:
        return paragraph
    return "".join(
        piece if is_code else _without_tags(piece, closed)
        for piece, is_code in split_code_spans(paragraph)
    )


def _without_tags(text: str, closed: frozenset[str]) -> str:
    def component(match: re.Match[str]) -> str:
        name, attributes, self_closing = match.groups()
        if name not in closed and not self_closing:
            return match.group()
        shown = _attribute(attributes, "title") or _attribute(attributes, "label")
        return (shown or "") + _blank(match.group())

    def image(match: re.Match[str]) -> str:
        shown = f"![{_attribute(match.group(1), 'alt') or ''}]"
        return f"{shown}({_attribute(match.group(1), 'src') or ''})" + _blank(match.group())

    def link(match: re.Match[str]) -> str:
        destination = _attribute(match.group(1), "href")
        if not destination or not match.group(2).strip():
            return match.group()
        return f"[{match.group(2)}]({destination})" + _blank(match.group(1))

    def tag(match: re.Match[str]) -> str:
        return _blank(match.group()) or (" " if _SPACED.match(match.group()) else "")

    text = _COMPONENT.sub(component, text)
    return _HTML.sub(tag, _LINK.sub(link, _IMAGE.sub(image, text)))


def _attribute(attributes: str, name: str) -> str | None:
    for match in _TEXT_ATTRIBUTE.finditer(attributes):
        if match.group(1) == name:
            value = next(group for group in match.groups()[1:] if group is not None)
            return " ".join(value.split())
    return None


def _without_comments(text: str) -> str:
    for opening, closing in (("<!--", "-->"), ("{/*", "*/}")):
        text = _without_span(text, opening, closing)
    return text


def _without_span(text: str, opening: str, closing: str) -> str:
    if opening not in text:
        return text
    kept: list[str] = []
    done = 0
    while (start := text.find(opening, done)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        kept.append(text[done:start] + _blank(text[start:end]))
        done = end + len(closing)
    return "".join(kept) + text[done:]


def _blank(text: str) -> str:
    return "\n" * text.count("\n")
