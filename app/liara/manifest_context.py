"""A parsed liara.json as the rules see it: which platform it is for and which port it means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.liara.platforms import PLATFORMS, Platform

JsonMap = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """The top-level object, and what it is deployed as."""

    data: JsonMap
    platform: Platform | None

    @property
    def uses_image(self) -> bool:
        """Whether a ready image is deployed instead of the project."""
        return bool(self.data.get("image"))

    @property
    def port(self) -> int | None:
        """The port that the file states, as a number."""
        raw = self.data.get("port")
        if isinstance(raw, str) and raw.isascii() and raw.isdigit() and len(raw) <= 5:
            return int(raw)
        return raw if isinstance(raw, int) and not isinstance(raw, bool) else None

    @property
    def effective_port(self) -> int | None:
        """The stated port, else the one that the CLI takes for the platform."""
        if self.port:
            return self.port
        return self.platform.default_port if self.platform else None

    def mapping(self, key: str) -> JsonMap:
        """Return an object of the top level, empty where there is none."""
        value = self.data.get(key)
        return value if isinstance(value, dict) else {}

    def strings(self, key: str) -> Iterator[tuple[int, str]]:
        """Yield the strings of an array of the top level with their places."""
        value = self.data.get(key)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, str):
                yield index, item


def manifest_context(data: JsonMap, asked: Platform | None) -> ManifestContext:
    """Find the platform: docker for a ready image, else as named by the file, caller or object."""
    if data.get("image"):
        return ManifestContext(data, PLATFORMS["docker"])
    named = data.get("platform")
    if isinstance(named, str) and named in PLATFORMS:
        return ManifestContext(data, PLATFORMS[named])
    if asked is not None:
        return ManifestContext(data, asked)
    objects = [name for name in data if name in PLATFORMS]
    return ManifestContext(data, PLATFORMS[objects[0]] if len(objects) == 1 else None)
