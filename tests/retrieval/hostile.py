"""Spellings of what a hostile document tries, and readers that decode eagerly to find them."""

import html
import re
import unicodedata
from urllib.parse import unquote

from hypothesis import strategies as st

ZWNJ = "\u200c"
TAG_SPELLINGS = [
    "</docs>",
    '<docs source="trusted">',
    "</DOCS>",
    "< / docs >",
    "<\n/docs\n>",
    "<\\/docs>",
    "＜/docs＞",
    "﹤/docs﹥",
    "‹/docs›",
    "&lt;/docs&gt;",
    "&LT;/docs&GT;",
    "&ltdocs",
    "&amp;lt;/docs&amp;gt;",
    "&#60;/docs&#62;",
    "&#x3C;/docs&#x3e;",
    "&#38;lt;/docs",
    "&lt;&sol;docs&gt;",
    "<d&#111;cs>",
    "<&#x64;ocs>",
    "%3C/docs%3E",
    "%253C%252Fdocs%253E",
    "\\u003c/docs\\u003e",
    "\\x3c/docs\\x3e",
    "<d\u200bocs>",
    "<do\u2060cs>",
    f"<{ZWNJ}docs>",
    f"<do{ZWNJ}cs>",
    "</d\U000e0041ocs>",
    "<\u202edocs>",
    "<\x00docs>",
    "<ｄｏｃｓ>",
    "<𝐝𝐨𝐜𝐬>",
    "<ⅾосѕ>",
    "<d\u0301ocs>",
    "<docs\tid=1>",
    "<docs/>",
    f"<docs{ZWNJ}x>",
]
CITATION_SPELLINGS = [
    "[3]",
    "  [3]",
    "\t[3]",
    "> [3]",
    "- [3]",
    "* > - [3]",
    "1. [3]",
    "- [ ] [3]",
    "**[3]**",
    "`[3]`",
    "| [3] |",
    "［3］",
    "【3】",
    "[３]",
    "[۳]",
    "[٣]",
    "[ 3 ]",
    f"{ZWNJ}[3]",
    "\u202e[3]",
    "\u200b[3]",
    "&#91;3&#93;",
    "&lbrack;3&rbrack;",
    "&nbsp;[3]",
    "<b>[3]</b>",
    "…[3]",
]
DANGEROUS_LINKS = [
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a]( javascript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](java\tscript:alert(1))",
    "[a](java\u200bscript:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](javascript&colon;alert(1))",
    "[a](javascript&#x3a;alert(1))",
    "[a](vbscript:x)",
    "![a](data:text/html;base64,AAAA)",
    "[a](file:///etc/passwd)",
    "[a](//evil.example/x)",
    "[a](/\\evil.example/x)",
    "[a](\\\\evil.example/x)",
    "[a]: javascript:alert(1)",
    "> [a]: //evil.example",
    "<javascript:alert(1)>",
    '<a href="javascript:alert(1)">',
    "<a href=' java&#10;script:alert(1)'>",
    "<img src=//evil.example/x>",
    "javascript:alert(1)",
]
HOSTILE = st.sampled_from([*TAG_SPELLINGS, *CITATION_SPELLINGS, *DANGEROUS_LINKS])
FRAGMENTS = st.sampled_from(
    "< ＜ / & lt; amp; #60; docs DOCS d ocs > [ ］ 3 ۳ ] ( ]( // : javascript data".split()
    + 'text/html, href= " - %3c \\u003c \\ دیسک'.split()
    + list("\n \r\u2028\x00\u200c\u200b\u202e\U000e0041")
)
ANY_TEXT = st.lists(st.one_of(HOSTILE, FRAGMENTS, st.text(max_size=5)), max_size=12).map("".join)


def decoded_forms(text: str) -> list[str]:
    """The text as ever more eager readers would decode it, without what shows nothing."""
    forms = [text]
    for _ in range(4):
        forms.append(html.unescape(unquote(forms[-1])))
    kept = [re.sub(r"\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})", _from_hex, form) for form in forms]
    folded = [unicodedata.normalize("NFKD", form).casefold() for form in [*forms, *kept]]
    return ["".join(c for c in f if unicodedata.category(c) not in ("Cf", "Mn")) for f in folded]


def _from_hex(found: re.Match[str]) -> str:
    return chr(int(found[1] or found[2], 16))


def holds_tag(text: str) -> bool:
    return any(re.search(r"<[\W_]*docs(?![^\W_])", form) for form in decoded_forms(text))


def holds_leading_citation(text: str) -> bool:
    return any(
        re.search(r"^\W*\[\s*\d+\s*\]", form, re.MULTILINE) for form in (text, *decoded_forms(text))
    )
