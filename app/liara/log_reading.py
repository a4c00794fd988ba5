"""What each line of a cleaned log is: a message, a stack frame, a warning, a trailer.

An error is named by its message; frames and source excerpts below or above it only repeat it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.liara.log_cleaning import is_noise

_TRACEBACK = re.compile(r"(?P<indent>\s*)(?:[|+] *)*Traceback \(most recent call last\):")
_FRAME = re.compile(
    r"\s+at .{1,400}|\s*#\d+ .*(?:\(\d+\)|\{main\}|: \w.*\().*|\s*#\d+ \{main\}"
    r"|\s+File \"[^\"]*\", line \d+.*"
    r"|\t?/\S+\.go:\d+ \+0x[0-9a-f]+|goroutine \d+ \[.*|\s*\d+: 0x[0-9a-f]+ .*"
    r"|\s*-->? .{0,200}:\d+:\d+"
    r"|[\s|~^]+|\s*Require stack:|- /\S+\.[cm]?[jt]s"
)
_CARETS = re.compile(r"[\s|~]*\^[\s^~]*")
# Inner exceptions stand below the outer one and name the cause.
_INNER = re.compile(r"\s*(?:---> |Caused by: |\[cause\]: |\(Inner Exception #\d+\) )")
_INNER_TAIL = re.compile(r"\s+at |\s*--- End of inner|\s*\.\.\. \d+ more|\s{2,}")

_WARNING = re.compile(
    r"\s*(?:npm warn|warn(?:ing)?\b|\[warn(?:ing)?\]|\(node:\d+\) (?:warning|\[dep)|"
    r"(?:\w+ )?(?:deprecat\w+)\b|hint: |note: |info\b|debug\b|php (?:notice|deprecated): )",
    re.IGNORECASE,
)
# Phrases that hold the words of an error and report none.
_HARMLESS = re.compile(
    r"\b(?:0|no|without|zero) (?:errors?|failures?|failed|warnings?|problems?|issues?)\b"
    r"|\b(?:errors?|failed|failures)[:=] ?0\b|\b0 failed\b"
    r"|\"(?:error|errors|err)\": ?(?:null|\[\]|false|\"\")"
    r"|ignoring (?:the )?error|error handlers?\b|exited with code 0\b|errors? fixed"
    r"|[\w/.@-]{0,80}errors?[\w/-]{0,60}\.(?:log|[cm]?jsx?|tsx?|vue|py|php|html|css|scss|map)\b",
    re.IGNORECASE,
)
# Requests that were answered, tests that passed.
_SUCCESS = re.compile(
    r".*HTTP/\d(?:\.\d)?\"? [123]\d\d\b|\s*(?:GET|HEAD|POST|PUT|PATCH|DELETE"
    r"|OPTIONS) \S+ [123]\d\d\b"
    r"|\s*(?:✓|✔|ok \d|PASS )",
)
# They close a cascade: true, and useless.
_TRAILER = re.compile(
    r"npm (?:err!|error) (?:code|errno|path|syscall|signal|command|cwd|exit status|failed at"
    r"|this is probably|lifecycle|workspace|location|  )"
    r"|npm (?:err!|error) .{0,60}(?:exit status|elifecycle)|error command failed"
    r"|command failed(?: with exit code|\.$|:)|elifecycle"
    r"|.*\b(?:exit(?:ed)?(?: with)?(?: status| code)?:? ?\(?[1-9]\d{0,2}\)?|non-zero (?:code"
    r"|exit)).*$"
    r"|(?:error: )?failed to solve|=> error |error \[|> \[|-{3,}(?!>)|dockerfile:\d"
    r"|make(?:\[\d\])?: \*\*\*"
    r"|(?:✖ |× )?(?:build|release|deployment|deploy|upload) failed|build error occurred"
    r"|failed to compile\.?$"
    r"|the command .{1,200} returned a non-zero|for more (?:information|details)|see above"
    r"|this error (?:originates|happened)"
    r"|error: (?:process|subprocess-exited|executor failed)|script .{1,80} returned"
    r"|worker failed to boot|shutting down"
    r"|reason: |node\.js v\d|note: this|emitted 'error'|code: '|throw (?:er|err|new)\b"
    r"|thrown in |stack trace|lerna err|turbo |nx "
    r"|.*\bworker \(pid|the following error|there (?:was|were) (?:an )?errors?"
    r"|one or more errors occurred\.$"
    r"|.*\b(?:build|deployment) (?:was )?(?:unsuccessful|aborted)",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"(?:.{0,80}\b)?(?:[A-Z]\w*(?:Error|Exception|Fault|Failure)|[a-z_]\w*\.[A-Za-z_.]*(?:Error"
    r"|Exception))\b(?:\s?\[[A-Z_0-9]+\]|\s?\(\S{1,20}\))?(?::|$)"
    r"|.{0,60}\b(?i:fatal(?: error)?|panic|unhandled exception|uncaught(?: exception| error)?"
    r"|critical|emerg|segmentation fault)\b\]?[:. ]"
    r"|(?:Error|ERROR|error|ERR!|خطا)(?:\s?\[?[A-Z]{1,6}\d{2,6}\]?)?:\s?\S"
)
_WEAK = re.compile(
    r"\b(?:errors?|err!|fail(?:ed|ure|s)?|fatal|cannot|can't|could not|couldn't|unable to"
    r"|not found|denied|invalid"
    r"|missing|forbidden|unauthorized|mismatch|conflicting|corrupt(?:ed)?|blocked by|no such"
    r"|not allowed|refused|rejected|timed? ?out|unexpected|exception|does(?: not|n't) exist"
    r"|violates|crash(?:ed)?|abort(?:ed)?|panic"
    r"|unhealthy|killed|sig(?:kill|segv|abrt|bus)|on signal \d{1,2})\b"
    r"|خطا|ناموفق|شکست خورد|یافت نشد|پیدا نشد",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LogLines:
    """A cleaned log, as it is shown and as it is searched.

    `written` is the log with stack frames blanked out, `searchable` the same in lower case, and
    `starts` gives the place of each line in both; `order` ranks lines from cause to consequence.
    """

    shown: tuple[str, ...]
    lowered: tuple[str, ...]
    written: str
    searchable: str
    everything: str
    starts: tuple[int, ...]
    order: tuple[int, ...]
    frames: frozenset[int]
    warnings: frozenset[int]
    harmless: frozenset[int]
    trailers: frozenset[int]


def read_lines(lines: Sequence[str]) -> LogLines:
    """Sort the lines of a cleaned log by what they are."""
    frames = _frames(lines) | {i for i, line in enumerate(lines) if is_noise(line)}
    lowered = tuple(_lower(line) for line in lines)
    messages = ["" if index in frames else line for index, line in enumerate(lines)]
    starts: list[int] = []
    position = 0
    for line in messages:
        starts.append(position)
        position += len(line) + 1
    written = "\n".join(messages)
    return LogLines(
        shown=tuple(lines),
        lowered=lowered,
        written=written,
        searchable=_lower(written),
        everything="\n".join(lowered),
        starts=tuple(starts) or (0,),
        order=_causal_order(lines),
        frames=frames,
        warnings=frozenset(i for i, line in enumerate(lines) if _WARNING.match(line)),
        harmless=frozenset(i for i, line in enumerate(lines) if _is_harmless(line)),
        trailers=frozenset(i for i, line in enumerate(lines) if _TRAILER.match(line.strip())),
    )


def _is_harmless(line: str) -> bool:
    if _SUCCESS.match(line):
        return True
    rest = _HARMLESS.sub(" ", line)
    return rest != line and not _WEAK.search(rest)


def _lower(text: str) -> str:
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    # A few capitals have two small letters; places in the text must stay the same.
    return "".join(small if len(small := char.lower()) == 1 else char for char in text)


def best_unknown_line(lines: LogLines) -> int | None:
    """Return the line that names an error best, or None if no line speaks of one.

    First come messages in the form of an exception, then other words of failure, then trailers;
    within each, the nearest to the cause.
    """
    ignored = lines.frames | lines.harmless | lines.warnings
    usable = sorted(
        (i for i in range(len(lines.shown)) if i not in ignored), key=lambda i: lines.order[i]
    )
    spoken = [i for i in usable if _WEAK.search(lines.shown[i]) or _STRONG.match(lines.shown[i])]
    causes = [i for i in spoken if i not in lines.trailers]
    strong = (i for i in causes if _STRONG.match(lines.shown[i]))
    return next(strong, next(iter(causes), next(iter(spoken), None)))


def _frames(lines: Sequence[str]) -> frozenset[int]:
    frames = {i for i, line in enumerate(lines) if _FRAME.fullmatch(line)}
    # The source line that a caret below points at.
    frames |= {i - 1 for i in frames if i and _CARETS.fullmatch(lines[i])}
    inside: int | None = None
    for i, line in enumerate(lines):
        if header := _TRACEBACK.match(line):
            inside = len(header["indent"])
            frames.add(i)
        elif inside is not None:
            if len(line) - len(line.lstrip()) > inside:
                frames.add(i)
            else:
                inside = None
    return frozenset(frames)


def _causal_order(lines: Sequence[str]) -> tuple[int, ...]:
    """Number the lines so that an inner exception comes before the one that wraps it."""
    order: list[int] = []
    block: list[int] = []
    for i, line in enumerate(lines):
        if _INNER.match(line) or (block and _INNER_TAIL.match(line)):
            block.append(i)
            continue
        order += _inner_first(block, lines)
        block = [i]
    order += _inner_first(block, lines)
    ranks = [0] * len(lines)
    for rank, i in enumerate(order):
        ranks[i] = rank
    return tuple(ranks)


def _inner_first(block: list[int], lines: Sequence[str]) -> list[int]:
    inner = [i for i in block if _INNER.match(lines[i])]
    return [*reversed(inner), *(i for i in block if i not in inner)] if inner else block
