"""A tolerant reading of text that is almost JSON: each fault by name, and what was meant."""

import bisect
import json
import re
from dataclasses import dataclass, field

from app.liara.manifest_finding import MANIFEST_PAGE, Finding, quote

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\n\r]+)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<single>'(?:[^'\\\n]|\\.)*')
    | (?P<curly>[“”„«](?:[^“”»"\n])*[“”»])
    | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)
    | (?P<unclosed_comment>/\*.*)
    | (?P<punctuation>[{}\[\]:,])
    | (?P<persian_comma>[،؛;])
    | (?P<unclosed_string>["'][^\n]*)
    | (?P<word>[^\s{}\[\]:,;،؛"'\#]+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_NO_NUMBER = re.compile(r"[-+]?(?:NaN|Infinity|undefined)")


def tokenize(text: str) -> list[re.Match[str]]:
    """Cut text into tokens; every character belongs to one."""
    return [*_TOKEN.finditer(text)]


@dataclass(slots=True)
class Places:
    """Offsets of a text as line and column."""

    text: str
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Note where each line starts."""
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def error(self, offset: int, problem: str, allowed: str | None = None) -> Finding:
        """Return a syntax error at an offset."""
        line = bisect.bisect_right(self.starts, offset)
        column = offset - self.starts[line - 1] + 1
        return Finding("$", "error", problem, allowed, MANIFEST_PAGE, line, column)


@dataclass(slots=True)
class TolerantReader:
    """Walks over the tokens, notes each fault and writes what was probably meant."""

    tokens: list[re.Match[str]]
    places: Places
    faults: list[Finding] = field(default_factory=list)
    pieces: list[tuple[str, int]] = field(default_factory=list)
    mendable: bool = True

    def read(self) -> None:
        """Read all tokens; `faults`, `pieces` and `mendable` hold the outcome."""
        for index, token in enumerate(self.tokens):
            written = self._mended(index, token)
            self.pieces.append((written, token.start()))

    def original_offset(self, mended_offset: int, end: int) -> int:
        """Return where an offset of the mended text lies in the original, `end` beyond it."""
        position = 0
        for piece, offset in self.pieces:
            if mended_offset < position + len(piece):
                return offset + min(mended_offset - position, max(len(piece) - 1, 0))
            position += len(piece)
        return end

    def _mended(self, index: int, token: re.Match[str]) -> str:
        text = token.group()
        match token.lastgroup:
            case "comment" | "unclosed_comment":
                self._fault(token, "A comment: JSON has none.", "Remove it.")
                return " "
            case "single" | "curly":
                self._fault(token, f'Quotes other than " around {quote(text[1:-1])}.', 'Write "…".')
                return json.dumps(text[1:-1].replace("\\'", "'").replace('\\"', '"'))
            case "persian_comma":
                self._fault(token, f"{text} separates nothing in JSON.", "Write a comma: ,")
                return ","
            case "unclosed_string":
                if self.mendable:  # After the first one, quotes open where they should close.
                    self._fault(token, f"The string {quote(text[1:])} is not closed on its line.")
                self.mendable = False
            case "punctuation" if text == "," and self._next_solid(index) in ("}", "]", ""):
                self._fault(token, "A comma follows the last entry.", "Remove it.")
                return " "
            case "word":
                return self._word(index, token)
            case "other":
                self._fault(token, f"{quote(text)} has no meaning here.")
                return " "
        return text

    def _word(self, index: int, token: re.Match[str]) -> str:
        word = token.group()
        if word in ("true", "false", "null") or _NUMBER.fullmatch(word):
            return word
        if word in _PYTHON_WORDS:
            self._fault(token, f"{word} is Python.", f"Write {_PYTHON_WORDS[word]}.")
            return _PYTHON_WORDS[word]
        if self._next_solid(index) == ":":
            self._fault(token, f"The key {quote(word)} has no quotes.", 'Keys stand in "…".')
            return json.dumps(word)
        if _NO_NUMBER.fullmatch(word) or word.lstrip("+-")[:1].isdigit() or word[:1] in ".+-":
            self._fault(token, f"{quote(word)} is not a number of JSON.")
        else:
            self._fault(token, f"The value {quote(word)} has no quotes.", 'Texts stand in "…".')
        self.mendable = False
        return word

    def _next_solid(self, index: int) -> str:
        for following in range(index + 1, len(self.tokens)):
            token = self.tokens[following]
            if token.lastgroup not in ("space", "comment", "unclosed_comment"):
                return token.group()
        return ""

    def _fault(self, token: re.Match[str], problem: str, allowed: str | None = None) -> None:
        self.faults.append(self.places.error(token.start(), problem, allowed))
