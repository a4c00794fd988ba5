"""Secrets that stand openly in a liara.json, which usually lies in git."""

import re
from collections.abc import Iterator

from app.liara.manifest_context import ManifestContext
from app.liara.manifest_finding import Finding, PathPart, quote
from app.liara.manifest_schema import finding
from app.liara.secrets import mask_secrets

_SECRET_NAME = re.compile(
    r"(?i)(?:^|_|(?<=[a-z]))(?:password|passwd|passphrase|pwd|pass|secret|token|credentials?"
    r"|api_?key|app_?key|private_?key|access_?key|secret_?key|encryption_?key|signing_?key)"
    r"(?:_?(?:id|v?\d+))?$|^(?:jwt|session|cookie)_?secret"
)
# Values that stand for a secret instead of being one.
_NO_SECRET = re.compile(
    r"(?i)\s*(?:<.*>|\$\{?\w*\}?|\{\{.*\}\}|\*+|x{3,}|\.{3,}|your[-_ ].*|change[-_ ]?me|none|null"
    r"|true|false|\d{1,2})?\s*",
    re.DOTALL,
)
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALLOWED = "Set it in the console or with `liara env:set`, or keep liara.json out of git."


def secret_findings(context: ManifestContext) -> Iterator[Finding]:
    """Name variables and arguments that hold a secret; the values are never repeated."""
    for name, value in context.mapping("envs").items():
        path: tuple[PathPart, ...] = ("envs", name)
        if not _VARIABLE_NAME.fullmatch(name):
            allowed = "Letters, digits and _, not a digit first."
            yield finding(path, "warning", f"{quote(name)} is no name of a variable.", allowed)
        if isinstance(value, str) and (kind := secret_kind(name, value)):
            yield finding(path, "warning", f"This looks like {kind}.", _ALLOWED)
    args = context.mapping("build").get("args")
    for index, arg in enumerate(args if isinstance(args, list) else ()):
        if isinstance(arg, str):
            name, _, value = arg.partition("=")
            if kind := secret_kind(name, value):
                path = ("build", "args", index)
                yield finding(path, "warning", f"This looks like {kind}.", _ALLOWED)


def secret_kind(name: str, value: str) -> str | None:
    """Say what secret a variable seems to hold, by the shape of its value, then by its name."""
    if _NO_SECRET.fullmatch(value):
        return None
    if mask_secrets(value) != value:
        return "a secret, by the form of its value"
    return "a secret, by its name" if _SECRET_NAME.search(name[:200]) else None
