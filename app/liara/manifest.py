"""Check a liara.json: read it, hold it against the schema, then against the rules."""

from dataclasses import dataclass

from app.errors import InvalidArgumentError
from app.liara.manifest_context import ManifestContext, manifest_context
from app.liara.manifest_finding import Finding
from app.liara.manifest_outlook import what_happens
from app.liara.manifest_parse import ParsedManifest, parse_manifest
from app.liara.manifest_rules import rule_findings
from app.liara.manifest_schema import schema_findings
from app.liara.platforms import Platform, resolve_platform

MAX_CONTENT_CHARS = 20_000
# A file with more faults than this is not a liara.json; the first ones say so.
MAX_FINDINGS = 40
_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class ManifestReport:
    """The judgement on a file: errors first, and what a deployment with it will do.

    `ok` means that no finding is an error. `omitted` says that more was found than is listed.
    """

    ok: bool
    platform: str | None
    findings: tuple[Finding, ...]
    what_happens: tuple[str, ...]
    omitted: bool = False


def validate_liara_json(content: str, platform: str | None = None) -> ManifestReport:
    """Check the text of a liara.json, for a platform where the file does not name it.

    Raises:
        InvalidArgumentError: The content is longer than MAX_CONTENT_CHARS.
        UnknownPlatformError: No platform has that name.
    """
    if len(content) > MAX_CONTENT_CHARS:
        raise InvalidArgumentError(
            f"content has {len(content)} characters; at most {MAX_CONTENT_CHARS} are checked. "
            "Send the liara.json alone."
        )
    asked = resolve_platform(platform) if platform else None
    parsed = parse_manifest(content)
    findings, context = _judge(parsed, asked)
    ok = not any(item.severity == "error" for item in findings)
    return ManifestReport(
        ok=ok,
        platform=context.platform.name if context and context.platform else None,
        findings=tuple(findings[:MAX_FINDINGS]),
        what_happens=_outlook(parsed, context, ok=ok),
        omitted=len(findings) > MAX_FINDINGS,
    )


def _judge(
    parsed: ParsedManifest, asked: Platform | None
) -> tuple[list[Finding], ManifestContext | None]:
    findings = [*parsed.findings]
    context: ManifestContext | None = None
    if parsed.readable:
        if isinstance(parsed.value, dict):
            context = manifest_context(parsed.value, asked)
            findings += rule_findings(context, asked)
        name = context.platform.name if context and context.platform else None
        # A rule explains a bad value better than the schema does: one error a place is enough.
        explained = {item.json_path for item in findings if item.severity == "error"}
        broken = schema_findings(parsed.value, name)
        findings += (item for item in broken if item.json_path not in explained)
    findings.sort(key=lambda item: _ORDER[item.severity])
    return [*dict.fromkeys(findings)], context


def _outlook(
    parsed: ParsedManifest, context: ManifestContext | None, *, ok: bool
) -> tuple[str, ...]:
    if any(item.line is not None and item.severity == "error" for item in parsed.findings):
        return ("`liara deploy` stops at the syntax error, before anything is uploaded.",)
    return what_happens(context) if ok and context is not None else ()
