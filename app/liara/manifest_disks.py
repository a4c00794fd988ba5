"""The disks of a liara.json and where they are mounted."""

import posixpath
import re
from collections.abc import Iterator

from app.liara.manifest_context import ManifestContext
from app.liara.manifest_finding import Finding, PathPart, quote
from app.liara.manifest_schema import finding

# Folders that hold the system or the kernel's files: a disk there hides them.
_SYSTEM_FOLDERS = frozenset(
    "/bin /boot /dev /etc /lib /lib64 /proc /run /sbin /sys /usr /usr/bin /usr/lib".split()
)
_UNEXPANDED = re.compile(r"^~|\$")


def disk_findings(context: ManifestContext) -> Iterator[Finding]:
    """Check each disk's mount path, and that no two disks share a name or a path."""
    disks = context.data.get("disks")
    names: set[str] = set()
    targets: set[str] = set()
    for index, disk in enumerate(disks if isinstance(disks, list) else ()):
        if not isinstance(disk, dict):
            continue
        name, target = disk.get("name"), disk.get("mountTo")
        if isinstance(name, str):
            if name in names:
                problem = f"The disk {quote(name)} is mounted twice."
                yield finding(("disks", index, "name"), "warning", problem)
            names.add(name)
        if isinstance(target, str) and target:
            yield from _target(context, ("disks", index, "mountTo"), target, targets)


def _target(
    context: ManifestContext, path: tuple[PathPart, ...], target: str, taken: set[str]
) -> Iterator[Finding]:
    allowed = "A folder: relative to the project, or absolute."
    plain = posixpath.normpath(target.strip())
    if plain in ("/", "//", "."):
        yield finding(path, "error", "A disk cannot be mounted on the root.", allowed)
        return
    if plain in taken:
        yield finding(path, "error", f"Two disks are mounted to {quote(plain)}.", allowed)
    taken.add(plain)
    if ".." in plain.split("/"):
        yield finding(path, "error", f"{quote(target)} leaves the project.", allowed)
    elif plain in _SYSTEM_FOLDERS or plain.startswith(("/proc/", "/sys/", "/dev/")):
        yield finding(path, "error", f"{quote(target)} is a folder of the system.", allowed)
    if "\\" in target or re.match(r"[A-Za-z]:", target):
        yield finding(path, "error", f"{quote(target)} is a Windows path.", allowed)
    elif _UNEXPANDED.search(target):
        yield finding(path, "warning", f"{quote(target)}: ~ and $ are not expanded.", allowed)
    if target != target.strip():
        yield finding(path, "warning", "The path begins or ends with a space.", allowed)
    yield from _style(context, path, plain)


def _style(context: ManifestContext, path: tuple[PathPart, ...], plain: str) -> Iterator[Finding]:
    platform = context.platform
    if platform is None or platform.disk_path is None:
        return
    is_absolute = plain.startswith("/")
    if platform.disk_path == "absolute" and not is_absolute:
        severity = "warning" if platform.name == "docker" else "info"
        problem = f"{platform.title} is documented with absolute paths."
    elif platform.disk_path == "relative" and is_absolute:
        severity = "info"
        problem = f"{platform.title} is documented with paths relative to the project."
    else:
        return
    pages = platform.pages["disk"]
    found = finding(path, severity, problem)
    yield Finding(found.json_path, found.severity, problem, found.allowed, pages[0])
