"""The border between documents and instructions: what a reader is shown of other people's text.

URL, title, heading and body are neutralised each on its own, after any cutting, and the whole
goes into one envelope that names the document set and the revision. Nothing here knows what
the text means; logs and configuration files that a tool echoes pass through the same functions.
"""

import html
import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

MAX_LINE_CHARS = 200
MAX_SENTENCE_CHARS = 1000
MAX_URL_CHARS = 1000
# A line is cut to so many times its length before it is cleaned: an argument may have megabytes.
_READ_PER_SHOWN = 20
UNSAFE_LINK = "#unsafe-link"

# ZWNJ joins Persian words, ZWJ joins emoji, U+FE0F picks the emoji form of a character.
_KEPT_INVISIBLES = frozenset("\u200c\u200d\ufe0f")
# Characters that show nothing and are neither controls nor format characters (Cf).
_OTHER_INVISIBLES = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\uffa0\ufe00-\ufe0e"
_LINE_BREAKS = re.compile("\r\n|[\r\u0085\u2028\u2029]")
_UNWANTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff" + _OTHER_INVISIBLES + "]"
)

# An ampersand may itself be written as an entity, any number of times over.
_AMP = r"&(?:amp;|#0*38;|#x0*26;)*"
_AMP_CHAIN = re.compile(_AMP, re.IGNORECASE)
_TAG_OPENER = re.compile(
    rf"[<＜﹤‹〈〈⟨«《❮❬ᐸ˂⧼≺]|{_AMP}(?:lt;?|#0*60;?|#x0*3c;?|lang(?:le)?;|laquo;|lsaquo;)"
    r"|%(?:25)*3c|\\u003c|\\x3c|\\u\{0*3c\}",
    re.IGNORECASE,
)
# One character as a reader may decode it: an entity, a percent or backslash escape, or itself.
_CHARACTER = re.compile(
    rf"(?P<entity>{_AMP}(?:#x[0-9a-f]{{1,8}};?|#[0-9]{{1,8}};?|[a-z][a-z0-9]{{1,31}};))"
    r"|(?:%(?:25)*|\\u00|\\x)(?P<code>[0-9a-f]{2})|(?P<blank>\\[nrtfv])|.",
    re.IGNORECASE | re.DOTALL,
)
_TAG_NAME = "docs"
_LOOK_ALIKES = str.maketrans("ԁɗоοօ᧐сϲςѕꜱ", "ddoooocccss")

_BRACKET = rf"[\[［【〔⟦〖⁅❲]|{_AMP}(?:lbrack;|lsqb;|#0*91;?|#x0*5b;?)|%5b|\\u005b|\\x5b"
_BRACKET_END = rf"[\]］】〕⟧〗⁆❳]|{_AMP}(?:rbrack;|rsqb;|#0*93;?|#x0*5d;?)|%5d|\\u005d|\\x5d"
_AFTER_BRACKET = re.compile(rf"(?:{_BRACKET_END})\Z", re.IGNORECASE)
_NUMERAL = r"[\d²³¹⁰-⁹₀-₉①-⓿]"
# What may stand before a forged `[3]` and still leave it at the head of its line for a reader:
# blanks, list and quote markers, emphasis, a numbered item, a task box, an HTML tag or entity.
# Taken once and kept by the look-ahead: a possessive group of alternatives does not match as it
# should before Python 3.11.5, which some systems still have.
_LEAD = (
    rf"^(?=(?P<lead>(?:\[[ xX]\]|</?[A-Za-z][^<>\[\]\n]{{0,80}}>|(?<!\()[0-9]{{1,9}}[.)][ \t]"
    rf"|(?!{_BRACKET})(?:&\#?\w{{1,12}};|[^\w\n]))*))(?P=lead)"
)
_FORGED_CITATION = re.compile(
    rf"{_LEAD}(?:{_BRACKET})"
    rf"[^\w\n]{{0,8}}(?P<number>{_NUMERAL}(?:\s{{0,3}}{_NUMERAL}){{0,12}})[^\w\n]{{0,8}}?"
    rf"(?:{_BRACKET_END})",
    re.IGNORECASE | re.MULTILINE,
)

_DENIED_SCHEMES = re.compile(
    r"(?:java|vb|live|j|ecma)script:|mocha:|data:|file:|blob:|filesystem:|view-source:|jar:|about:"
)
# First characters that no dangerous destination has, in any spelling: most links end here.
_HARMLESS_START = re.compile(
    r"https?://|[^\W\d_abdefjlmv]|[\d_#.?\[\](){}*`~=+-]|/(?![/\\])", re.I | re.A
)
_SCHEME_WINDOW = 300
_FOLDED_SLASHES = re.compile(r"[/\\]{2}")
# Where Markdown or HTML takes a link's destination; the destination follows the match.
_LINK_POSITION = re.compile(
    r"\]\(\s{0,8}<?|^[ \t>]{0,12}\[[^\]\n]{1,200}\]:[ \t]{0,8}\n?[ \t]{0,8}<?|<(?=[^<>\n]{0,40}:)"
    r"|\b(?:href|src|srcset|action|formaction|poster|background|cite|data|ping|manifest|codebase)"
    r"\s{0,8}=\s{0,8}[\"'{]{0,2}",
    re.IGNORECASE | re.MULTILINE,
)
_DESTINATION = re.compile(r"[^\s)>\"'}]{0,2000}(?:[\t\n ]{1,4}[^\s)>\"'}]{1,400}){0,3}")
# A data URL in running text or code is harmless, and examples need it; a script URL never is.
_SCRIPT_ANYWHERE = re.compile(r"\b(?:java|vb)\s{0,2}script\s{0,2}[:：](?=\S)", re.IGNORECASE)
_URL_IN_LINE = re.compile(r"[:：﹕∶︓]\s{0,2}[/／∕⁄\\]\s?[/／∕⁄\\]")
_HOST = re.compile(r"[\w](?:[\w.-]{0,251}[\w])?")
_ATTRIBUTE = re.compile(r"[^A-Za-z0-9._:+-]")


def envelope(body: str, *, set_id: str, rev: str) -> str:
    """Wrap neutralised text that carries documents, naming its set and revision."""
    marks = f'set="{_ATTRIBUTE.sub("_", set_id)}" rev="{_ATTRIBUTE.sub("_", rev)}"'
    # Parts that are harmless alone may form a tag where they meet.
    return f'<docs source="untrusted" {marks}>\n{_escape_tags(body)}\n</docs>'


def neutralise_text(text: str) -> str:
    """Return body text that can neither leave the envelope nor forge a citation.

    Lines and everything visible stay; idempotent. Cut first, neutralise afterwards: a cut can
    move the middle of a line to its head.
    """
    return _break_citations(_defuse_links(_escape_tags(_visible(text))))


def neutralise_line(text: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Return a title or heading as one line that holds no URL, tag or citation."""
    is_cut = len(text) > _READ_PER_SHOWN * max_chars
    line = " ".join(_visible(text[: _READ_PER_SHOWN * max_chars]).split()) + "…" * is_cut
    line = _defuse_links(_escape_tags(line))
    line = _break_citations(_URL_IN_LINE.sub(": / /", line))
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def neutralise_sentence(text: str, max_chars: int = MAX_SENTENCE_CHARS) -> str:
    """Return a sentence of our own that repeats an argument or what a tool said, as one line.

    Other than in a title, URLs stay: the sentence may be about one.
    """
    is_cut = len(text) > _READ_PER_SHOWN * max_chars
    line = " ".join(_visible(text[: _READ_PER_SHOWN * max_chars]).split()) + "…" * is_cut
    line = neutralise_text(line)
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"


def neutralise_url(url: str) -> str | None:
    """Return an http(s) URL that stays one token in any text; None when it is not fit to show."""
    if len(url) > MAX_URL_CHARS or _UNWANTED.search(url) or re.search(r"[\s<>\"`\\]", url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or parts.username is not None:
        return None
    if not _HOST.fullmatch(host) or ".." in host or _has_docs_tag(url):
        return None
    shown = f"{parts.scheme}://{host}" + (f":{port}" if port else "") + _quoted(parts.path)
    shown += f"?{_quoted(parts.query)}" if parts.query else ""
    return shown + (f"#{_quoted(parts.fragment)}" if parts.fragment else "")


def _visible(text: str) -> str:
    """Drop what shows nothing or turns the direction of the line."""
    return _UNWANTED.sub("", _LINE_BREAKS.sub("\n", text))


def _escape_tags(text: str) -> str:
    """Replace the opening bracket of every form of a docs tag by `(`.

    An entity would not do: a reader that decodes entities would find the tag again.
    """
    openers = list(_TAG_OPENER.finditer(text))
    verdicts: dict[int, bool] = {}
    for opener in reversed(openers):
        verdicts[opener.start()] = _names_docs(text, opener.end(), verdicts)
    pieces: list[str] = []
    done = 0
    for opener in openers:
        if verdicts[opener.start()]:
            # Right behind `]` the bracket alone would make a link.
            joined = _AFTER_BRACKET.search(text, max(opener.start() - 40, 0), opener.start())
            pieces += (text[done : opener.start()], " (" if joined else "(")
            done = opener.end()
    pieces.append(text[done:])
    return "".join(pieces)


def _has_docs_tag(text: str) -> bool:
    decoded = html.unescape(unquote(unquote(text)))
    return _escape_tags(text) != text or _escape_tags(decoded) != decoded


def _names_docs(text: str, start: int, verdicts: Mapping[int, bool]) -> bool:
    """Whether the next letters are d, o, c, s in any spelling, whatever stands between them.

    `verdicts` are those of the openers further on: brackets in a row share the last one's.
    """
    wanted = 0
    position = start
    while wanted < len(_TAG_NAME):
        if position >= len(text):
            return False
        if wanted == 0 and position in verdicts:
            return verdicts[position]
        letters, position = _letters_at(text, position)
        for letter in letters:
            if wanted == len(_TAG_NAME) or letter != _TAG_NAME[wanted]:
                return False
            wanted += 1
    return position >= len(text) or not _letters_at(text, position)[0]


def _letters_at(text: str, position: int) -> tuple[str, int]:
    """Return the letters and digits that one character reads as, and where the next begins."""
    found = _CHARACTER.match(text, position)
    if found is None:
        return "", position + 1
    char, end = found[0], found.end()
    if found["entity"]:
        # In one step: undoing one `amp;` after the other would take time with the square of them.
        char, before = _AMP_CHAIN.sub("&", char, count=1), ""
        while char != before:
            char, before = html.unescape(char), char
        if len(char) > 2:  # a name that runs on into other text: `&ltx;`
            char, end = text[position], position + 1
    elif found["code"]:
        char = chr(int(found["code"], 16))
    elif found["blank"]:
        char = " "
    folded = unicodedata.normalize("NFKD", char).casefold().translate(_LOOK_ALIKES)
    return "".join(letter for letter in folded if letter.isalnum()), end


def _break_citations(text: str) -> str:
    return _FORGED_CITATION.sub(_parenthesised, text)


def _parenthesised(found: re.Match[str]) -> str:
    return f"{found['lead']}({found['number']})"


def _defuse_links(text: str) -> str:
    """Take dangerous and protocol-relative destinations out of links; text beside them stays."""
    pieces: list[str] = []
    done = 0
    for position in _LINK_POSITION.finditer(text):
        if position.end() < done:
            continue
        start = position.end()
        if not _HARMLESS_START.match(text, start) and _is_dangerous(text, start):
            pieces += (text[done:start], UNSAFE_LINK)
            done = _destination_end(text, start)
    pieces.append(text[done:])
    return _SCRIPT_ANYWHERE.sub("unsafe:", "".join(pieces))


def _destination_end(text: str, start: int) -> int:
    found = _DESTINATION.match(text, start)
    return found.end() if found else start


def _is_dangerous(text: str, start: int) -> bool:
    folded = text[start : min(start + _SCHEME_WINDOW, _destination_end(text, start))]
    for _ in range(3):
        folded = html.unescape(unquote(folded))
    folded = unicodedata.normalize("NFKC", folded).casefold()
    folded = "".join(c for c in folded if c.isprintable() and not c.isspace())
    return bool(_DENIED_SCHEMES.match(folded) or _FOLDED_SLASHES.match(folded))


def _quoted(part: str) -> str:
    """Percent-encode what would end a URL in running text; letters and their marks stay."""
    return "".join(char if _stays(char) else quote(char, safe="") for char in part)


def _stays(char: str) -> bool:
    return char.isalnum() or char in "/-._~%!$&*+,;=:@?" or unicodedata.category(char) == "Mn"
