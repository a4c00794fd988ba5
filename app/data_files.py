"""Where the facts that the program ships lie: beside the code or inside the wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_path(*parts: str) -> Path:
    """Return the path of a shipped data file, as in `data_path("liara", "platforms.json")`."""
    installed = _PACKAGE / "data"
    root = installed if installed.is_dir() else _PACKAGE.parent / "data"
    return root.joinpath(*parts)
