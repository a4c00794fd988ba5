"""What a schema cannot say about a liara.json: how its keys fit each other and the platform."""

import re
from collections.abc import Callable, Iterator, Sequence

from app.liara.manifest_context import ManifestContext
from app.liara.manifest_cron import cron_findings
from app.liara.manifest_disks import disk_findings
from app.liara.manifest_finding import Finding, PathPart, quote, show
from app.liara.manifest_schema import finding, schema_at
from app.liara.manifest_secrets import secret_findings
from app.liara.platforms import PLATFORMS, Platform

Rule = Callable[[ManifestContext], Iterator[Finding]]

MAX_PORT = 65535
# Keys whose value a template leaves to be filled in.
_NAMED_KEYS = ("app", "team-id", "image")
_PLACEHOLDER = re.compile(r"<[^<>]*>|\{\{[^{}]*\}\}")
_SAMPLE_WORDS = re.compile(r"(?i)your[-_ ].*|change[-_ ]?me|todo|x{3,}")
_IMAGE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9._-]+(?:/[a-z0-9._-]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?:@sha256:[0-9a-f]{64})?"
)
MAX_IMAGE_CHARS = 255
_LOCAL_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0):([0-9]{1,5})\b")
_CURL_FAILS = re.compile(r"(?:^|\s)(?:--fail\S*|-[A-Za-z]*f[A-Za-z]*)(?=\s|$)")
_HEALTH_FORMS = ("CMD", "CMD-SHELL", "NONE")
_PROJECT_FILES = (
    ("build", "dockerfile"),
    ("django", "settingsFile"),
    ("go", "mainFile"),
    ("dotnet", "csprojectFile"),
)
_ARGS_PLATFORMS = ("docker", "python", "laravel")


def rule_findings(context: ManifestContext, asked: Platform | None) -> Iterator[Finding]:
    """Run every rule over a file whose top level is an object."""
    yield from _asked_platform(context, asked)
    for rule in _RULES:
        yield from rule(context)


def _asked_platform(context: ManifestContext, asked: Platform | None) -> Iterator[Finding]:
    platform = context.platform
    if asked is not None and platform is not None and asked.name != platform.name:
        reason = "deploys an image" if context.uses_image else "says so"
        problem = f"Checked as {platform.name}, not {asked.name}: the file {reason}."
        yield finding(("platform",), "warning", problem)


def _placeholders(context: ManifestContext) -> Iterator[Finding]:
    for key in _NAMED_KEYS:
        value = context.data.get(key)
        if not isinstance(value, str):
            continue
        if match := _PLACEHOLDER.search(value):
            yield finding((key,), "error", f"The placeholder {quote(match[0])} is not filled in.")
        elif _SAMPLE_WORDS.fullmatch(value):
            yield finding((key,), "warning", f"{quote(value)} looks like a placeholder.")


def _app(context: ManifestContext) -> Iterator[Finding]:
    app = context.data.get("app")
    if isinstance(app, str) and app != app.lower():
        yield finding(("app",), "info", f"The CLI lowers the letters: {quote(app.lower())}.")


def _image(context: ManifestContext) -> Iterator[Finding]:
    image = context.data.get("image")
    if not isinstance(image, str) or not image:
        return
    filled = _PLACEHOLDER.sub("x", image)
    if len(filled) > MAX_IMAGE_CHARS or not _IMAGE.fullmatch(filled):
        allowed = "A reference such as registry/name:tag, in small letters with one tag."
        yield finding(("image",), "error", f"{quote(image)} does not name an image.", allowed)
    named = context.data.get("platform")
    if isinstance(named, str) and named != "docker":
        problem = f"The platform {quote(named)} is not used: an image is deployed as docker."
        yield finding(("platform",), "warning", problem, "docker, or no platform.")
    for key in ("healthCheck", "build"):
        if key in context.data:
            yield finding((key,), "warning", "Not used when a ready image is deployed.")


def _port(context: ManifestContext) -> Iterator[Finding]:
    raw, port, platform = context.data.get("port"), context.port, context.platform
    if isinstance(raw, str):
        yield finding(("port",), "info", "The port stands in quotes.", "A number: 3000.")
        if port is not None and not 1 <= port <= MAX_PORT:
            allowed = f"A number from 1 to {MAX_PORT}."
            yield finding(("port",), "error", f"{show(raw)} is out of range.", allowed)
    if platform is None or not platform.brings_web_server or "args" in context.data:
        return
    if port is not None and port != platform.default_port:
        problem = (
            f"{platform.title} brings its own web server, and the CLI takes port "
            f"{platform.default_port} for it; {port} answers only if yours listens there."
        )
        yield finding(("port",), "warning", problem, f"{platform.default_port}, or no port.")


def _platform_objects(context: ManifestContext) -> Iterator[Finding]:
    platform = context.platform
    if platform is None:
        return
    others = [name for name in context.data if name in PLATFORMS and name != platform.name]
    # With the object of its own platform missing, the settings were surely meant to count.
    severity = "warning" if platform.name in context.data else "error"
    for name in others:
        problem = f"This object is not used: the platform is {platform.name}."
        allowed = f"$.{platform.config_key}" if platform.config_key else "No object of a platform."
        yield finding((name,), severity, problem, allowed)


def _github(context: ManifestContext) -> Iterator[Finding]:
    keys = [key for key in ("app", "platform") if key in context.data]
    if keys:
        words = " and ".join(keys)
        problem = f"{words}: for `liara deploy` only. Leave out when deploying from GitHub."
        yield finding((keys[0],), "info", problem)


def _health_check(context: ManifestContext) -> Iterator[Finding]:
    path = ("healthCheck", "command")
    command = context.mapping("healthCheck").get("command")
    if isinstance(command, list):
        words = [word for word in command if isinstance(word, str)]
    elif isinstance(command, str):
        words = command.split()
        if "  " in command.strip() or '"' in command or "'" in command:
            problem = "The CLI splits the command at every space and knows no quotes."
            yield finding(path, "warning", problem, 'An array of words: ["CMD", "curl", …].')
    else:
        return
    for key, value in context.mapping("healthCheck").items():
        if key != "command" and isinstance(value, str):
            problem = f"The number {quote(value)} stands in quotes."
            yield finding(("healthCheck", key), "info", problem, "A number.")
    if words and words[0] not in _HEALTH_FORMS:
        problem = f"The command begins with {quote(words[0])}."
        yield finding(path, "warning", problem, "CMD and then the command, as documented.")
    yield from _health_request(context, " ".join(words), path)


def _health_request(
    context: ManifestContext, line: str, path: tuple[PathPart, ...]
) -> Iterator[Finding]:
    port = context.effective_port
    for match in _LOCAL_PORT.finditer(line):
        if port is not None and int(match.group(1)) != port:
            problem = f"The check asks port {match.group(1)}, the app is served on {port}."
            yield finding(path, "warning", problem, f"localhost:{port}")
            break
    if re.search(r"\bcurl\b", line) and not _CURL_FAILS.search(line):
        problem = "Without --fail curl reports success for an HTTP error too."
        yield finding(path, "warning", problem, "curl --fail")


def _build(context: ManifestContext) -> Iterator[Finding]:
    build, platform = context.mapping("build"), context.platform
    args = build.get("args")
    for index, arg in enumerate(args if isinstance(args, list) else ()):
        path: Sequence[PathPart] = ("build", "args", index)
        if isinstance(arg, str) and not re.match(r"[A-Za-z_][A-Za-z0-9_]*=", arg):
            yield finding(path, "error", f"{quote(arg)} has no name.", "NAME=value")
        elif isinstance(arg, str) and arg.count("=") > 1:
            problem = "The CLI drops what follows the second `=`."
            yield finding(path, "warning", problem, "A value without `=`.")
    for key in ("dockerfile", "args"):
        if key in build and platform is not None and platform.name != "docker":
            problem = f"Documented for the platform docker; this is {platform.name}."
            yield finding(("build", key), "info", problem)


def _args(context: ManifestContext) -> Iterator[Finding]:
    platform = context.platform
    if "args" in context.data and platform and platform.name not in _ARGS_PLATFORMS:
        names = ", ".join(_ARGS_PLATFORMS)
        yield finding(("args",), "info", f"Documented for {names}; this is {platform.name}.")


def _versions(context: ManifestContext) -> Iterator[Finding]:
    for name in (name for name in context.data if name in PLATFORMS):
        for key, value in context.mapping(name).items():
            known = (schema_at((name, key)) or {}).get("x-values")
            if known and isinstance(value, str | int | float) and not isinstance(value, bool):
                yield from _version((name, key), value, known)


def _version(path: tuple[str, str], value: str | float, known: Sequence[str]) -> Iterator[Finding]:
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    allowed = "One of: " + ", ".join(known) + ", as a string."
    if isinstance(value, float):
        problem = "A number loses its last zero: write the version as a string."
        yield finding(path, "warning", problem, allowed)
    if text in known or f"{text}.0" in known:
        return
    numbers = _numbers(text)
    # Liara may have added versions since these were listed; it does not bring old ones back.
    newer = numbers is not None and numbers > max(_numbers(item) or () for item in known)
    problem = f"{show(value)} is not among the known versions."
    yield finding(path, "warning" if newer else "error", problem, allowed)


def _numbers(version: str) -> tuple[int, ...] | None:
    if not re.fullmatch(r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}", version):
        return None
    return tuple(int(part) for part in version.split("."))


def _project_files(context: ManifestContext) -> Iterator[Finding]:
    for parent, key in _PROJECT_FILES:
        value = context.mapping(parent).get(key)
        if isinstance(value, str) and re.match(r"[/\\~]|[A-Za-z]:|.*\\", value):
            problem = f"{quote(value)} is not a path inside the project."
            yield finding((parent, key), "warning", problem, "A relative path with `/`.")


_RULES: tuple[Rule, ...] = (
    _placeholders,
    _app,
    _image,
    _port,
    _platform_objects,
    _github,
    disk_findings,
    cron_findings,
    _health_check,
    _build,
    _args,
    _versions,
    _project_files,
    secret_findings,
)
