"""What a deployment with a sound liara.json will do, in a few lines."""

from collections.abc import Iterator

from app.liara.manifest_context import ManifestContext
from app.liara.manifest_finding import quote, show

# Lists in an answer name this many items; the rest is a number.
MAX_NAMED = 5


def what_happens(context: ManifestContext) -> tuple[str, ...]:
    """Say what `liara deploy` does with the file and what it will ask for."""
    return tuple(_lines(context))


def _lines(context: ManifestContext) -> Iterator[str]:
    data, platform = context.data, context.platform
    app = data.get("app")
    yield (
        f"Deploys to the app {quote(str(app).lower())}." if app else "Asks which app to deploy to."
    )
    if account := data.get("account"):
        yield f"Uses the account {show(account)} of the CLI."
    if data.get("team-id"):
        yield "The app is looked up in the team of team-id."
    if context.uses_image:
        yield f"Runs the ready image {show(data['image'])}; nothing is built."
    elif "platform" in data and platform is not None:
        yield f"Builds the project as {platform.name}."
    elif platform is not None:
        yield f"Names no platform: the app's own type is used. Checked here as {platform.name}."
    else:
        yield "Names no platform: the app's own type is used."
    yield _port_line(context)
    if not context.uses_image:
        yield from _build_lines(context)
    yield from _run_lines(context)


def _port_line(context: ManifestContext) -> str:
    platform = context.platform
    if context.port:
        return f"Sends requests to port {context.port}, where the program must listen on 0.0.0.0."
    if platform is None:
        return "Names no port: the platform's own is used, or the CLI asks."
    known = f"Names no port: {platform.default_port} is used." if platform.default_port else ""
    return " ".join(part for part in (known or "Names no port.", platform.port_note) if part)


def _build_lines(context: ManifestContext) -> Iterator[str]:
    build = context.mapping("build")
    cache = "without" if build.get("cache") is False else "with"
    yield f"Builds in {build.get('location', 'iran')}, {cache} the cache of earlier builds."
    if context.platform is not None:
        own = context.mapping(context.platform.name)
        for key in ("version", "nodeVersion", "phpVersion", "pythonVersion"):
            if key in own:
                yield f"Uses {key} {show(own[key])}."


def _run_lines(context: ManifestContext) -> Iterator[str]:
    data = context.data
    if disks := data.get("disks"):
        shown = [
            f"{quote(disk['name'])} at {quote(disk['mountTo'])}"
            for disk in (disks if isinstance(disks, list) else [])
        ]
        more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
        yield f"Mounts {', '.join(shown[:MAX_NAMED])}{more}: the disks must exist already."
    if "envs" in data:
        count = len(context.mapping("envs"))
        yield f"Replaces all environment variables of the app by the {count} in the file."
    if jobs := [*context.strings("cron")]:
        yield f"Schedules {len(jobs)} command{'s' if len(jobs) > 1 else ''}."
    if context.mapping("healthCheck") and not context.uses_image:
        yield "Moves traffic to the new release only after its health check succeeds."
    if [*context.strings("args")]:
        yield "Starts the program with `args` instead of the platform's own command."
