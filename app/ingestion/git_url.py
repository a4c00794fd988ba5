"""Git sources as the operator writes them: what is safe to call, to show, and what is secret."""

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from app.errors import SourceUnavailableError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_REMOTE_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
# host:path and user@host:path, as ssh takes them; a drive letter is no host.
_SCP = re.compile(r"(?:[\w.+-]+@)?[\w.-]{2,}:(?!//)\S")
_USERINFO = re.compile(r"(?<=://)[^/\s]*@")
_PARAMETER = re.compile(r"(?<=[?&])([^=&\s]{1,100}=)[^&\s]*")
_REF = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[^\s~^:?*\[\\\x00-\x20\x7f]{1,250}")
_FULL_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_SHA = re.compile(r"[0-9a-f]{7,64}")
# Long names without a password are access tokens, not people: GitHub takes them that way.
_MIN_TOKEN_CHARS = 20

# The protocol of the source, and those that a machine's `insteadOf` or a redirect may turn it to.
_ALLOWED_PROTOCOLS = {
    "https": "https:ssh",
    "http": "http:https:ssh",
    "ssh": "ssh:https",
    "git": "git:https:ssh",
    "file": "file",
}


@dataclass(frozen=True, slots=True)
class GitUrl:
    """A git source without its secrets, which travel apart from the URL.

    `config` holds git settings that carry them; `secrets` every form that must not be shown.
    """

    url: str
    scheme: str
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def allowed_protocols(self) -> str:
        """The value of GIT_ALLOW_PROTOCOL."""
        return _ALLOWED_PROTOCOLS[self.scheme]


def is_git_source(source: str) -> bool:
    """Tell a git URL from a local folder; an existing folder is always a folder."""
    if _URL.match(source) or _REMOTE_HELPER.match(source):
        return True
    return bool(_SCP.match(source)) and not Path(source).expanduser().is_dir()


def display_source(source: str) -> str:
    """Return a source as it may be shown: credentials are masked."""
    return _PARAMETER.sub(r"\1***", _USERINFO.sub(_masked_userinfo, source))


def parse_git_url(source: str) -> GitUrl:
    """Take a git source apart.

    Raises:
        SourceUnavailableError: The URL is broken, or its protocol is not used here.
    """
    if not _URL.match(source):
        if _REMOTE_HELPER.match(source) or source.startswith("-") or not _SCP.match(source):
            raise _refused(source)
        return GitUrl(source, "ssh")
    try:
        parts = urlsplit(source)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise SourceUnavailableError(f"{display_source(source)} is not a valid URL") from None
    scheme = parts.scheme.lower()
    if scheme not in _ALLOWED_PROTOCOLS or not source.isprintable() or " " in source:
        raise _refused(source)
    if (not host and scheme != "file") or (host or "").startswith("-"):
        raise SourceUnavailableError(f"{display_source(source)} names no host")
    if parts.query:
        # It would stand in git's arguments and config, where a token must not.
        raise SourceUnavailableError(f"{display_source(source)}: a git URL has no query")
    if scheme in ("https", "http"):
        return _without_credentials(parts)
    if parts.password is not None:
        # ssh takes no password from a URL; it must not be stored or shown either.
        user = f"{parts.username}@" if parts.username else ""
        parts = parts._replace(netloc=user + parts.netloc.rpartition("@")[2])
    return GitUrl(urlunsplit(parts), scheme, secrets=_forms(urlsplit(source).password or ""))


def check_ref(ref: str) -> None:
    """Refuse what is no name of a branch, tag or commit, above all what git takes for an option.

    Raises:
        SourceUnavailableError: The ref cannot be used.
    """
    if not _REF.fullmatch(ref) or ref.endswith((".lock", "/", ".")):
        raise SourceUnavailableError(f"{ref[:80]!r} is not a branch, tag or commit")


def is_full_sha(ref: str) -> bool:
    """Tell whether a ref is a whole commit hash."""
    return bool(_FULL_SHA.fullmatch(ref))


def is_sha(ref: str) -> bool:
    """Tell whether a ref can be a commit hash, whole or shortened."""
    return bool(_SHORT_SHA.fullmatch(ref))


def mask(text: str, url: GitUrl) -> str:
    """Remove the secrets of a source from a text, in every form in which they travel."""
    for secret in sorted(url.secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return display_source(text)


def _without_credentials(parts: SplitResult) -> GitUrl:
    userinfo, at, host = parts.netloc.rpartition("@")
    clean = urlunsplit(parts._replace(netloc=host))
    if not at:
        return GitUrl(clean, parts.scheme.lower())
    name, colon, password = userinfo.partition(":")
    origin = urlunsplit((parts.scheme.lower(), host, "/", "", ""))
    if not colon and len(unquote(name)) < _MIN_TOKEN_CHARS:
        # A person's name: the machine's credential helper has the password.
        config = ((f"credential.{origin}.username", unquote(name)),)
        return GitUrl(clean, parts.scheme.lower(), config)
    pair = f"{unquote(name)}:{unquote(password)}"
    encoded = base64.b64encode(pair.encode()).decode("ascii")
    config = ((f"http.{origin}.extraHeader", f"Authorization: Basic {encoded}"),)
    secrets = (*_forms(password or name), encoded, userinfo)
    return GitUrl(clean, parts.scheme.lower(), config, secrets)


def _forms(secret: str) -> tuple[str, ...]:
    plain = unquote(secret)
    return tuple({form for form in (secret, plain, quote(plain, safe="")) if form})


def _masked_userinfo(match: re.Match[str]) -> str:
    # `ssh://git@host` shows how git logs in, and no secret.
    return match.group() if match.group() == "git@" else "***@"


def _refused(source: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"{display_source(source)[:200]} is not a source that may be used: give a local folder, or "
        "an https, ssh or file URL of a git repository"
    )
