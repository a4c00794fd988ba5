import pytest

from app.errors import InvalidQueryError
from app.index.builder import build_index
from app.retrieval.abstention import FEATURES
from app.retrieval.explain import explain
from tests.index.test_snapshot import manifest
from tests.retrieval.sets import index_of

PAGES = {
    f"paas/{name}/{page}.md": f"# {page}\n\nHow {page} works on the platform.\n"
    for name in ("laravel", "django")
    for page in ("disks", "envs", "logs")
}


def explained(query: str) -> str:
    return "\n".join(explain(index_of(PAGES), query))


def test_terms_are_named_with_their_weight_and_chunks() -> None:
    assert "  1.00  disks (2)" in explained("disks")


def test_products_are_named() -> None:
    assert "products named: django" in explained("disks in django")
    assert "products named: none" in explained("disks")


def test_every_piece_of_evidence_is_told() -> None:
    shown = explained("disks")
    assert all(f"{name} " in shown for name in FEATURES)


def test_a_query_without_letters_is_refused() -> None:
    with pytest.raises(InvalidQueryError):
        explained("?!")


def test_a_set_without_chunks_is_explained() -> None:
    lines = list(explain(build_index(manifest(files=0, chunks=0), []), "disk"))
    assert lines[-1] == "evidence: none, the set is empty"
