from hypothesis import given
from hypothesis import strategies as st

from app.index.products import find_products

SITE = "https://docs.example.com/"
TWINS = [
    f"{SITE}paas/{name}/{page}/"
    for name in ("laravel", "django", "next-js")
    for page in ("disks", "envs", "logs", "domains")
]


def names_of(pages: list[str]) -> set[str]:
    return {name for group in find_products(pages) for name in group.pages_of}


def test_sibling_folders_with_the_same_pages_are_products() -> None:
    (group,) = find_products(TWINS)
    assert set(group.pages_of) == {"laravel", "django", "nextjs"}
    assert group.any_product.all()


def test_paths_of_files_are_read_as_urls_are() -> None:
    paths = [page.removeprefix(SITE).rstrip("/") + ".md" for page in TWINS]
    assert names_of(paths) == names_of(TWINS)


def test_folders_that_share_one_page_of_many_are_no_products() -> None:
    pages = [f"{SITE}{path}/" for path in ("cli/about", "cli/install", "dns/about", "dns/records")]
    assert find_products(pages) == ()


def test_a_page_elsewhere_that_names_a_product_is_about_it() -> None:
    pages = [*TWINS, f"{SITE}dbaas/connect/laravel/", f"{SITE}dbaas/connect/"]
    (group,) = find_products(pages)
    assert group.pages_of["laravel"].tolist() == [True] * 4 + [False] * 8 + [True, False]
    assert not group.any_product[-1]


def test_the_pages_of_all_products_that_are_named_count() -> None:
    (group,) = find_products(TWINS)
    named = group.pages_of_any({"laravel", "django", "disk"})
    assert named is not None
    assert named.tolist() == [True] * 8 + [False] * 4
    assert group.pages_of_any({"disk"}) is None


def test_a_set_without_pages_has_no_products() -> None:
    assert find_products([]) == ()


@given(st.lists(st.text(max_size=20) | st.text(alphabet="ab/:.%", max_size=12), max_size=12))
def test_any_page_names_can_be_grouped(pages: list[str]) -> None:
    for group in find_products(pages):
        assert all(mask.shape == (len(pages),) for mask in group.pages_of.values())
