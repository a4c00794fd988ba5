"""Relative links and images of a page become absolute, so that they work outside of its site."""

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

_MARKDOWN_SUFFIXES = (".markdown", ".mdx", ".md")
_INDEX_NAME = "index"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# The destination stops before any bracket: hostile runs of `](` then cost linear time.
_INLINE = re.compile(r"(?<=\]\()(\s{0,3}<?)([^\s<>()\[\]]{1,2000})")
_REFERENCE = re.compile(r"^([ ]{0,3}\[[^\[\]\n]{1,300}\]:[ \t]{0,8}<?)([^\s<>]{1,2000})", re.M)


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where a page is published (`url`) and, if URLs follow the files, where its file would be."""

    url: str | None
    file_url: str | None = None

    def absolute(self, destination: str) -> str:
        """Return a link destination as the reader of the published page would follow it."""
        if self.url is None or _is_absolute(destination):
            return destination
        try:
            if self.file_url and not destination.startswith(("#", "?")):
                return without_markdown_suffix(urljoin(self.file_url, destination))
            return urljoin(_page_base(self.url, destination), destination)
        except ValueError:
            return destination


def page_address(path: str, own_url: str | None, base_url: str | None) -> PageAddress:
    """Return the address of a file: the URL that it names, else base URL + path."""
    file_url = None
    if base_url:
        file_url = base_url.rstrip("/") + "/" + quote(path, safe="/@:~!$&'()*+,;=")
    if own_url:
        own_url = _resolved(own_url, base_url)
    if own_url:
        return PageAddress(own_url)
    return (
        PageAddress(without_markdown_suffix(file_url), file_url) if file_url else PageAddress(None)
    )


def without_markdown_suffix(url: str) -> str:
    """Drop `.md` from a URL's path; `index.md` stands for its folder."""
    parts = urlsplit(url)
    for suffix in _MARKDOWN_SUFFIXES:
        if parts.path.lower().endswith(suffix):
            path = parts.path[: -len(suffix)]
            folder, slash, name = path.rpartition("/")
            if name.lower() == _INDEX_NAME:
                path = folder + slash
            return urlunsplit(parts._replace(path=path))
    return url


def absolute_links(text: str, address: PageAddress) -> str:
    """Make the inline links, images and reference definitions of prose absolute."""
    if address.url is None or "]" not in text:
        return text

    def resolved(match: re.Match[str]) -> str:
        return match.group(1) + address.absolute(match.group(2))

    return _REFERENCE.sub(resolved, _INLINE.sub(resolved, text))


def _page_base(url: str, destination: str) -> str:
    """Return what a link of a page with a URL of its own is relative to.

    Sites serve `/a/page/` also as `/a/page`. On docs.liara.ir, of the links that lead to a page,
    all 486 that begin with `./` count from `/a/page`; of 335 that begin with `../`, 249 count
    from `/a/page/`.
    """
    return url if destination.startswith(("../", "#", "?", "/")) else url.rstrip("/")


def _resolved(url: str, base_url: str | None) -> str | None:
    try:
        joined = urljoin(base_url or "", url)
        parts = urlsplit(joined)
    except ValueError:
        return None
    is_web = parts.scheme in ("http", "https") and bool(parts.netloc)
    return joined if is_web and not re.search(r"\s", joined) else None


def _is_absolute(destination: str) -> bool:
    return destination.startswith(("//", "{", "<", "$")) or bool(_SCHEME.match(destination))
