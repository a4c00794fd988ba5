"""Small document sets, built from Markdown as any set is."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from app.index.snapshot import SearchIndex
from app.ingestion.ingest import ingest
from app.models import DocumentSetSpec, Layer


def index_of(
    files: Mapping[str, str],
    *,
    layers: tuple[Layer, ...] = (),
    questions: str | None = None,
) -> SearchIndex:
    """Build the index of Markdown files; `questions` is the text of a file of lay questions."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        for path, text in files.items():
            file = source / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        asked = Path(name) / "questions.jsonl"
        asked.write_text(questions or "", encoding="utf-8")
        spec = DocumentSetSpec(
            id="team",
            source=str(source),
            layers=layers,
            questions=str(asked) if questions else None,
        )
        return ingest(spec, Path(name) / "checkout")
