"""Products: sibling folders that hold the same pages, such as paas/laravel and paas/django.

Pages of such twins say nearly the same in nearly the same words, so a query that names one product
means that product's pages. Nothing here is a list: the groups are read off the page paths.
"""

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt

# Two folders are twins when they share more than this part of the smaller one's pages, and two of
# them or one in a folder of its own: `about` alone stands everywhere. On the paths of the official
# docs the part may be 0.5 to 0.55; at 0.4 unrelated folders become twins, at 0.6 a twin is lost.
_LEAST_SHARED = 2
_LEAST_OVERLAP = 0.55

Mask = npt.NDArray[np.bool_]


class ProductGroup:
    """Products of one parent folder: name -> which pages are about it."""

    def __init__(self, pages_of: dict[str, Mask]) -> None:
        """Take each product's pages as a mask over all pages."""
        self.pages_of = pages_of
        self.any_product: Mask = np.logical_or.reduce(list(pages_of.values()))

    def pages_of_any(self, names: AbstractSet[str]) -> Mask | None:
        """Return the pages of the products among `names`; None when there is no such product."""
        masks = [self.pages_of[name] for name in names & self.pages_of.keys()]
        return np.logical_or.reduce(masks) if masks else None


def find_products(pages: Sequence[str]) -> tuple[ProductGroup, ...]:
    """Group the pages (URLs or paths) of twin folders by product.

    A page belongs to a product when a folder of its path or its last part is the product's name:
    dbaas/mysql/how-tos/connect-via-platform/laravel is about mysql and about laravel.
    """
    segments = [_segments(page) for page in pages]
    groups = []
    for names in _twin_folders(segments):
        pages_of = {
            _name(folder): np.array([folder in page for page in segments], dtype=np.bool_)
            for folder in sorted(names)
        }
        groups.append(ProductGroup(pages_of))
    return tuple(groups)


def _segments(page: str) -> tuple[str, ...]:
    path = urlsplit(page).path if "://" in page else page.removesuffix(".md")
    return tuple(segment.casefold() for segment in unquote(path).split("/") if segment)


def _name(folder: str) -> str:
    return folder.replace("-", "").replace("_", "").replace(".", "")


def _twin_folders(segments: Sequence[tuple[str, ...]]) -> list[set[str]]:
    """Return, for each parent folder, the names of its children that have a twin."""
    below: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    children: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for page in segments:
        for depth in range(1, len(page)):
            below[page[:depth]].add(page[depth:])
            children[page[: depth - 1]].add(page[:depth])
    found = []
    for folders in children.values():
        twins = {
            folder[-1]
            for folder in folders
            if any(_are_twins(below[folder], below[other]) for other in folders - {folder})
        }
        if twins:
            found.append(twins)
    return found


def _are_twins(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> bool:
    shared = left & right
    telling = len(shared) >= _LEAST_SHARED or any(len(page) > 1 for page in shared)
    return telling and len(shared) > _LEAST_OVERLAP * min(len(left), len(right))
