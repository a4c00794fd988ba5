"""Masking of secrets in text that people paste: logs, configuration, connection strings.

Every rule is a regular expression with bounded repeats or a plain search, so the time grows with
the length of the text and not with its shape.
"""

import re

MASK = "***"

# Words that make the name of a value secret, wherever they stand in the name.
_TELLING_WORDS = (
    r"passw(?:or)?d|passphrase|passcode|(?<![a-z])pass(?![a-z])|(?<![a-z])pwd(?![a-z])|secret|token"
    r"|(?:api|app|access|private|encryption|signing|account|shared|master|auth|deploy|service)"
    r"[_.\- ]?key|(?<=[a-z0-9]_)key(?![a-z])|credential|connection[_.\- ]?string"
    r"|(?<![a-z])_auth(?![a-z])|sess(?:ion)?_?id|connect\.sid|x-amz-signature"
    r"|(?<![a-z])sig(?![a-z])"
    r"|(?<![a-z])salt(?![a-z])"
    r"|رمز(?:[ \u200c]?عبور)?|گذرواژه|[کك]لمه[ \u200c]?عبور|پسورد|تو[کك]ن|[کك]ل[یي]د"
)
# The name, its closing quote (escaped in JSON inside JSON), the separator and the opening quote.
_ASSIGNMENT = re.compile(
    rf"(?:{_TELLING_WORDS})[a-z0-9_.\-]{{0,40}}+(?:\\{{0,3}}[\"'`]|\])?[ \t]{{0,4}}"
    r"(?:=>|:=|={1,3}|:)[ \t]{0,4}(?P<quote>\\{0,3}[\"'`])?",
    re.IGNORECASE,
)
# A quote belongs to a bare value unless it ends a string around it.
_BARE_VALUE = re.compile(r"(?:[^\s\"'`]|[\"'`](?![\s,;:)}\]]|\Z)){1,4000}")
# A line of an env file, or an export: the value runs to the end of the line.
_TELLING_ENV_NAME = (
    r"(?=[A-Z0-9_]{0,60}(?:PASS|_PWD|SECRET|TOKEN|KEY|CREDENTIAL|SALT))[A-Z][A-Z0-9_]{1,80}+"
)
_ENV_LINE = re.compile(
    rf"^(?P<head>[ \t]{{0,20}}(?:export[ \t]{{1,4}}|set[ \t]{{1,4}})?{_TELLING_ENV_NAME}"
    r"[ \t]{0,2}=[ \t]{0,2})(?P<value>[^\s\"'][^\n]{0,4000}+)",
    re.MULTILINE,
)
_DOCKERFILE_ENV = re.compile(
    rf"(?P<head>\b(?:ENV|ARG)[ \t]{{1,4}}{_TELLING_ENV_NAME}[ \t]{{1,4}})"
    r"(?P<value>[^\s=]\S{0,4000}+)"
)
_FLAG = re.compile(
    r"(?P<head>--?[a-z\-]{0,30}(?:password|passwd|secret|token|api-?key)[a-z\-]{0,20}[ \t]{1,4})"
    r"(?P<value>[\"']?[^\s\-]\S{0,2000}+)",
    re.IGNORECASE,
)
_CLIENT_FLAG = re.compile(
    r"(?P<head>(?:mysql(?:dump|admin)?|mariadb)[ \t][^\n]{0,200}?[ \t]-p"
    r"|redis-cli[ \t][^\n]{0,200}?-a[ \t]{1,4}|sshpass[ \t]{1,4}-p[ \t]{0,4})(?P<value>\S{1,500}+)"
)
_CURL_USER = re.compile(
    r"(?P<head>(?:[ \t]-u|--user|--proxy-user)[ \t=]{1,3}[\"']?)(?P<value>[^\s:]{1,200}:\S{1,500}+)"
)
_SQL_IDENTIFIED = re.compile(
    r"(?P<head>identified by[ \t]{1,4}[\"'])(?P<value>[^\"'\n]{1,500})", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"(?P<head>authorization(?:\\{0,3}[\"'])?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}(?:\\{0,3}[\"'])?)"
    r"(?P<value>[^\n\"'}]{1,4000})",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"(?P<head>(?<![a-z])cookie(?:\\{0,3}[\"'])?[ \t]{0,4}:[ \t]{0,4}(?:\\{0,3}[\"'])?)"
    r"(?P<value>[^\n\"']{1,4000})",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?P<head>(?<![a-z0-9])bearer[ \t]{1,4})"
    r"(?P<value>(?=\S{0,200}[0-9_.=\-])\S{6,4000}+|\S{16,4000}+)",
    re.IGNORECASE,
)
# The user part of a URL ends before any path: an npm scope ("/@vue/cli") is not a credential.
_URL_USER = re.compile(r"(?P<head>://)(?P<value>[^\s/@\"<>?#]{1,500}+)(?=@)")
# A database password may hold "/", "@", "?" or "#" when nobody encoded it.
_DATABASE_URL = re.compile(
    r"(?P<head>(?:postgres(?:ql)?|mysql2?|mariadb|mongodb|rediss?|amqps?|sqlserver|mssql|smtps?"
    r"|clickhouse|jdbc:[a-z]{2,12})(?:\+[a-z0-9]{1,20})?://)"
    r"(?P<value>[^\s:/\"<>]{0,200}+:[^\s\"<>]{1,600})(?=@)",
    re.IGNORECASE,
)
_KNOWN_SHAPES = tuple(
    re.compile(r"(?<![A-Za-z0-9])" + shape)
    for shape in (
        r"eyJ[A-Za-z0-9_\-]{6,2000}+\.[A-Za-z0-9_\-]{4,4000}+(?:\.[A-Za-z0-9_\-]{0,4000}+){0,3}",
        r"(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ANVA)[A-Z0-9]{12,60}+",
        r"(?:gh[pousr]|github_pat|npm|dckr_pat|hf|shpat)_[A-Za-z0-9_\-]{16,400}+",
        r"(?:glpat|gldt|pypi|xapp|xox[abeoprs])-[A-Za-z0-9_\-]{10,400}+",
        r"(?:sk|pk|rk|whsec)[_\-](?=[A-Za-z_\-]{0,40}[0-9])[A-Za-z0-9_\-]{16,400}+",
        r"aa-[A-Za-z0-9]{20,200}+",
        r"AIza[A-Za-z0-9_\-]{30,60}+",
        r"ya29\.[A-Za-z0-9_\-]{20,400}+",
        r"SG\.[A-Za-z0-9_\-]{10,60}+\.[A-Za-z0-9_\-]{10,100}+",
        r"[0-9]{8,12}+:AA[A-Za-z0-9_\-]{30,60}+",
        r"base64:[A-Za-z0-9+/]{40,100}+={0,2}",
        r"hooks\.slack\.com/services/[A-Za-z0-9/]{10,200}+",
        r"discord(?:app)?\.com/api/webhooks/[A-Za-z0-9_\-/]{10,300}+",
    )
)
_PEM_KIND = r"[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20}-----"
_PEM_BEGIN = re.compile("-----BEGIN " + _PEM_KIND)
_PEM_END = re.compile("-----END " + _PEM_KIND)
# Lines of a key's body, also when they were written with a literal "\n"; the last one is short.
_PEM_BREAK = r"(?:\s|\\[nr])"
_PEM_BODY = re.compile(
    rf"{_PEM_BREAK}*+(?:[A-Za-z0-9+/=]{{32,}}+{_PEM_BREAK}*+)*+"
    rf"(?:(?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/=]+(?={_PEM_BREAK}|\Z))?"
)
_PEM_LINE = re.compile(r"(?:.*\s)?[A-Za-z0-9+/=]{32,}\s*")
_PEM_LAST_LINE = re.compile(r"(?:.*\s)?[A-Za-z0-9+/=]*\s*")

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
# Words that stand where a value would, but only tell about it.
_NOT_VALUES = frozenset(
    "yes no true false null none nil undefined required missing empty invalid expired unset not is "
    "was must cannot string".split()
)


def mask_secrets(text: str) -> str:
    """Replace passwords, tokens and keys by `***`; the text around them stays as it is."""
    text = _mask_private_keys(text)
    for pattern in (_AUTHORIZATION, _COOKIE, _DATABASE_URL, _URL_USER, _BEARER):
        text = pattern.sub(_keep_head, text)
    for pattern in _KNOWN_SHAPES:
        text = pattern.sub(MASK, text)
    text = _ENV_LINE.sub(_keep_head, text)
    text = _mask_assignments(text)
    for pattern in (_DOCKERFILE_ENV, _FLAG, _CLIENT_FLAG, _CURL_USER, _SQL_IDENTIFIED):
        text = pattern.sub(_keep_head, text)
    return text


def _keep_head(match: re.Match[str]) -> str:
    return match["head"] + MASK if _is_value(match["value"]) else match[0]


def _is_value(value: str) -> bool:
    word = _COLOUR.sub("", value).strip(" \t.:,;)]}'\"`").lower()
    return word not in _NOT_VALUES and word != MASK


def _mask_assignments(text: str) -> str:
    parts: list[str] = []
    position = 0
    while match := _ASSIGNMENT.search(text, position):
        start = match.end()
        end = _quoted_end(text, start, match["quote"]) if match["quote"] else _bare_end(text, start)
        value = text[start:end]
        # PWD is also the working directory that every shell exports.
        is_folder = match[0].upper() == "PWD=" and value.startswith("/")
        shown = MASK if value and _is_value(value) and not is_folder else value
        parts += [text[position:start], shown]
        position = end
    return "".join(parts) + text[position:]


def _bare_end(text: str, start: int) -> int:
    value = _BARE_VALUE.match(text, start)
    return value.end() if value else start


def _quoted_end(text: str, start: int, quote: str) -> int:
    """Return where the quoted value ends; an unclosed one ends with its line."""
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    end = text.find(quote, start, line_end)
    while end > start and len(quote) == 1 and text[end - 1] == "\\":
        end = text.find(quote, end + 1, line_end)
    return line_end if end < 0 else end


def _mask_private_keys(text: str) -> str:
    parts: list[str] = []
    position = 0
    while begin := _PEM_BEGIN.search(text, position):
        end = _PEM_END.search(text, begin.end())
        parts += [_mask_cut_keys(text[position : begin.start()]), MASK]
        if end is None:
            # The END line was cut off: what still looks like the body goes, the rest stays.
            body = _PEM_BODY.match(text, begin.end())
            position = body.end() if body else begin.end()
        else:
            position = end.end()
    parts.append(_mask_cut_keys(text[position:]))
    return "".join(parts)


def _mask_cut_keys(text: str) -> str:
    """Hide the tails of keys whose BEGIN line was cut off."""
    parts: list[str] = []
    position = 0
    for end in _PEM_END.finditer(text):
        lines = text[position : end.start()].replace("\\n", "\n").rstrip().split("\n")
        if _PEM_LAST_LINE.fullmatch(lines[-1]):
            lines.pop()
        while lines and _PEM_LINE.fullmatch(lines[-1]):
            lines.pop()
        parts += ["".join(line + "\n" for line in lines), MASK]
        position = end.end()
    return "".join(parts) + text[position:]
