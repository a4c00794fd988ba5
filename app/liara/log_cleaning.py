"""A pasted log to plain lines: no colour codes, progress bars, timestamps or prefixes.

Each line keeps its own indentation, for the shape of a traceback is told by it.
"""

import re

MAX_LINES = 300
# A minified bundle or a JSON dump on one line: what names the error stands at its start.
MAX_LINE_CHARS = 1500
# A line may carry the stamp of the collector, of the container and of the program itself.
_MAX_PREFIXES = 5

# CSI (also with its escape written out or lost), OSC up to its terminator, other escapes.
_ANSI = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\\e|\^\[)\[[0-?]{0,40}+[ -/]{0,4}+[@-~]|\x9b[0-?]{0,40}+[@-~]"
    r"|\x1b\][^\x07\x1b\n]{0,2000}+(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b\n]{0,2000}+(?:\x1b\\)?"
    r"|\x1b[ -/]{0,4}+[0-~]|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m"
)
# Control, bidi and tag characters carry no text; half a surrogate pair cannot be sent on.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")

_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,:]\d{1,9})?(?: ?[AaPp][Mm])?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[A-Z]{3,4}|[+-]\d{2}:?\d{2}))?"
_DAY_NAME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? "
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
# Digits are those of any script: Persian dates look the same.
_STAMP = (
    rf"\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}[T _-]{{1,2}}{_CLOCK}{_ZONE}"
    rf"|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}},? {_CLOCK}{_ZONE}"
    rf"|(?:{_DAY_NAME})?{_MONTH} {{1,2}}\d{{1,2}},? (?:\d{{4}},? )?{_CLOCK}{_ZONE}(?: \d{{4}})?"
    rf"|(?:{_DAY_NAME})?\d{{1,2}}[ -/]{_MONTH}[ -/]\d{{4}}[: ]{_CLOCK}{_ZONE}"
    rf"|{_CLOCK}{_ZONE}"
    r"|\d{10}(?:\.\d{1,9}|\d{3})?"
)
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"[\[(]?(?:{_STAMP})[\])]?(?: \[\d{{1,7}}\])?(?:[:,|]? |\t|$)",
        # journald and syslog, after their stamp: host, program and process id.
        r"[\w.\-]{1,60} [\w.\-/@]{1,60}\[\d{1,7}\]: ",
        r"(?:docker|dockerd|containerd|systemd|kernel|app|web|worker)(?:\[[\w.\-]{1,20}\])?: ",
        # A build step of BuildKit with its seconds; in its summary the seconds alone.
        r"#\d{1,4} \d{1,5}\.\d{1,3} ",
        r"#\d{1,4} (?=\[|CACHED|DONE|ERROR|CANCELED|sha256:|extracting|transferring|exporting)",
        r"\d{1,4}\.\d{2,3} (?=\S)",
        # docker compose, kubectl logs --prefix, process managers, monorepo runners.
        r"[\w.@/\-]{1,60} {1,30}\| ?",
        r"\[(?:pod|container)/[\w./\-]{1,120}\] ",
        r"\d{1,3}\|[\w.\-]{1,40} {0,10}\| ",
        r"@?[\w./\-]{1,60}:(?:build|dev|start|lint|test|compile|serve)(?::[\w\-]{1,20})?: ",
        r"\[Nest\] {1,4}\d{1,7} {1,4}- ",
        r"\[\d{1,7}\] (?=\[)",
        r"(?:stdout|stderr) (?:[FP] )?(?:\| ?)?",
        r"remote: (?=\S)",
        r"[ \t]{0,8}›[ \t]{0,4}",
        r"##\[(?=error\])",
    )
)

# Lines that tools print on the way, whatever becomes of the build.
_NOISE = re.compile(
    r"npm (?:warn|WARN) (?:deprecated|config|old lockfile|using --force|allow-scripts)"
    r"|npm (?:notice|timing|info|http)\b|npm (?:ERR!|error) ?$"
    r"|npm (?:ERR!|error) (?:A complete log of this run|\s+/\S+\.log$|For a full report"
    r"|To see a list)"
    r"|yarn (?:install|run) v\d|info (?:Visit|No lockfile|Direct|All deps)|\[\d/\d\] "
    r"|warning (?:\S+ > |\S+@|package\.json|\.\./)|Progress: resolved|Packages: \+|\++$"
    r"|added \d+ packages"
    r"|\d+ packages are looking for funding|found 0 vulnerabilities|run `npm fund`|up to date"
    r"|Collecting \S|Downloading \S|Using cached|Requirement already satisfied"
    r"|Looking in (?:indexes|links)"
    r"|Installing build dependencies|Getting requirements to build|Preparing metadata"
    r"|Stored in directory|Created wheel|Installing collected packages|\[notice\] "
    r"|WARNING: Running pip as"
    r"|- (?:Downloading|Installing|Syncing|Locking|Updating) \S+ \(|Extracting archive"
    r"|Generating (?:optimized )?autoload"
    r"|(?:Get|Hit|Ign):\d|(?:Fetched \d|Selecting|Preparing to unpack|Unpacking|Setting up) "
    r"|(?:go: )?downloading \S+ v|sha256:[0-9a-f]|[0-9a-f]{12}: (?:Pull|Wait|Down|Veri|Extr"
    r"|Already)"
    r"|(?:CACHED|DONE \d|transferring (?:context|dockerfile)|extracting sha256|exporting (?:to"
    r"|layers))"
    r"|Sending build context|Removing intermediate container|---> (?:Running in |Using cache"
    r"|[0-9a-f]{12}$)"
    r"|Uploading \[|(?:[-=_*~.━─╸╺#>|\\/\s]|\d{1,3}%)+$"
)


def clean_lines(text: str) -> list[str]:
    """Return the last lines of a log without colours, stamps and the prefixes of collectors."""
    text = strip_terminal_codes(text)
    lines = text.rstrip().split("\n")[-MAX_LINES:]
    cleaned = (_strip_prefixes(line.rstrip()) for line in lines)
    return [line[:MAX_LINE_CHARS] for line in cleaned if line]


def strip_terminal_codes(text: str) -> str:
    """Return what a terminal would show in the end, without colours and overwritten progress."""
    text = _SURROGATE.sub("\ufffd", text).replace("\r\n", "\n")
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_shown(line) for line in text.split("\n"))
    return _INVISIBLE.sub("", text)


def _last_shown(line: str) -> str:
    """Return the state of a line that a progress display wrote over and over."""
    return next((part for part in reversed(line.split("\r")) if part.strip()), "")


def _strip_prefixes(line: str) -> str:
    line = line[: MAX_LINE_CHARS * 2]
    for _ in range(_MAX_PREFIXES):
        match = next((found for prefix in _PREFIXES if (found := prefix.match(line))), None)
        if match is None:
            break
        line = line[match.end() :]
    return line


def is_noise(line: str) -> bool:
    """Tell whether a line only says that a tool is at work."""
    return _NOISE.match(line.strip()) is not None
