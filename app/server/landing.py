"""The pages for people: GET / says what this is and how to connect; GET /mcp is a short hint."""

import base64
import hashlib
import json
from html import escape
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from app import __version__
from app.library.library import DocumentLibrary
from app.server.security import Authority

_STYLE = (
    "body{font-family:system-ui,Vazirmatn,Tahoma,sans-serif;max-width:44rem;margin:2rem auto;"
    "padding:0 1rem;line-height:1.7;color:#1c2733;background:#fff}"
    "pre,code{background:#f0f3f6;border-radius:4px;direction:ltr;unicode-bidi:isolate}"
    "pre{padding:.8rem;overflow-x:auto;text-align:left}code{padding:.1rem .3rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .8rem;border-bottom:1px solid #d5dce3;"
    "text-align:start}@media(prefers-color-scheme:dark){body{color:#dce3ea;background:#12181f}"
    "pre,code{background:#1f2932}a{color:#7db7ff}}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # The page names the address that it was asked under, so it is nobody else's.
    "Cache-Control": "no-store",
}


class LandingPages:
    """Both pages, over the library whose sets they name."""

    def __init__(self, library: DocumentLibrary, public_url: str | None, *, token: bool) -> None:
        """Show `public_url`, or the address of the request; `token` adds the header to send."""
        self._library = library
        self._public_url = public_url
        self._token = token

    async def root(self, request: Request) -> HTMLResponse:
        """Answer GET /."""
        url = f"{self._base_url(request.scope)}/mcp"
        body = _ROOT.format(
            url=escape(url),
            config=escape(self._client_config(url)),
            command=escape(self._command(url)),
            sets=self._sets(),
            version=escape(__version__),
        )
        return _page("liara-docs-mcp", body)

    def endpoint(self, scope: Scope) -> Response:
        """Answer a browser at /mcp."""
        return _page("liara-docs-mcp", _ENDPOINT.format(root=escape(self._base_url(scope) + "/")))

    def _base_url(self, scope: Scope) -> str:
        if self._public_url is not None:
            return self._public_url
        headers = Headers(scope=scope)
        # A client can only mislead itself here: the answer is not stored, and nothing but this
        # text depends on the header.
        forwarded = headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
        scheme = forwarded if forwarded in ("http", "https") else scope["scheme"]
        authority = Authority.parse(headers.get("host", ""))
        if authority is None:
            return ""
        port = f":{authority.port}" if authority.port else ""
        return f"{scheme}://{quote(authority.host, safe='[]:.-_')}{port}"

    def _client_config(self, url: str) -> str:
        server: dict[str, object] = {"type": "http", "url": url}
        if self._token:
            server["headers"] = {"Authorization": "Bearer <token>"}
        return json.dumps({"mcpServers": {"liara-docs": server}}, indent=2)

    def _command(self, url: str) -> str:
        header = ' --header "Authorization: Bearer <token>"' if self._token else ""
        return f"claude mcp add --transport http liara-docs {url}{header}"

    def _sets(self) -> str:
        rows = [
            f"<tr><td>{escape(status.id)}</td><td>{escape(status.state)}</td>"
            f"<td>{status.pages}</td><td>{escape((index.rev or '—')[:12])}</td>"
            f"<td>{escape(index.built_at)}</td></tr>"
            for status in self._library.statuses()
            if (index := status.index) is not None
        ]
        return "".join(rows) or '<tr><td colspan="5">—</td></tr>'


def _page(title: str, body: str) -> HTMLResponse:
    html = (
        f'<!doctype html><html lang="fa" dir="rtl"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )
    return HTMLResponse(html, headers=SECURITY_HEADERS)


_ROOT = """\
<h1 dir="ltr">liara-docs-mcp {version}</h1>
<p>این سرور مستندات را از راه MCP در اختیار دستیارهای برنامه‌نویسی می‌گذارد. نشانی آن:</p>
<pre>{url}</pre>
<p>Claude Code:</p>
<pre>{command}</pre>
<p>برنامه‌های دیگر (فایل تنظیمات MCP):</p>
<pre>{config}</pre>
<div lang="en" dir="ltr">
<p>This server answers questions of coding assistants from documentation, over the Model Context
Protocol. Point an MCP client at the address above; the two boxes show how. There is nothing to
see there with a browser.</p>
<table><thead><tr><th>documents</th><th>state</th><th>pages</th><th>revision</th><th>built</th>
</tr></thead><tbody>{sets}</tbody></table>
<p><a href="/healthz">/healthz</a></p>
</div>"""

_ENDPOINT = """\
<h1 dir="ltr">liara-docs-mcp</h1>
<p>این نشانی برای برنامه‌های MCP است، نه مرورگر.
راه اتصال در <a href="{root}">صفحهٔ اصلی</a> آمده است.</p>
<p lang="en" dir="ltr">This address is for MCP clients, not for browsers. The
<a href="{root}">main page</a> says how to connect.</p>"""
