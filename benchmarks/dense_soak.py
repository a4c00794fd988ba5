"""Many clients while the embeddings endpoint is by turns fast, slow, dead and lying.

Serves a small set in a process of its own and asks it without pause. What must hold: no request
fails, the 95th percentile stays within the deadline plus 50 ms, the endpoint never sees more
connections than allowed, and the metrics agree with what the clients saw.

Run: python -m benchmarks.dense_soak [clients] [seconds]
"""

import asyncio
import itertools
import json
import logging
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.embeddings.endpoint import KEY, Endpoint, serving_embeddings
from tests.embeddings.models import DIMENSION

CLIENTS = 64
SECONDS = 60
DEADLINE_SECONDS = 1.5
MAX_CALLS = 8
PHASE_SECONDS = 2.5
PAUSE_SECONDS = 0.25
PHASES = ("good", "slow", "held", "good", "cut", "503", "good", "nan", "constant", "html")
WORDS = "domain disk backup release database cname record night week file app host port log".split()


@dataclass
class Seen:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    degraded: Counter[str] = field(default_factory=Counter)
    most_connections: int = 0


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(folder: Path, endpoint: Endpoint, port: int) -> dict[str, str]:
    """Write the documents and return what the server is started with."""
    notes = folder / "notes"
    notes.mkdir()
    for number, (one, other) in enumerate(itertools.combinations(WORDS, 2)):
        text = f"# The {one}\n\nHow a {one} goes with a {other}, case {number}.\n"
        (notes / f"{one}-{other}.md").write_text(text, encoding="utf-8")
    config = {"docs": {"notes": {"source": str(notes)}}, "default": {"docs": "notes"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = {"PATH": os.environ.get("PATH", "")}
    return path | {
        "PORT": str(port),
        "LIARA": "off",
        "LOG_LEVEL": "ERROR",
        "DATA_DIR": str(folder / "data"),
        "DOCS_CONFIG": str(folder / "config.json"),
        "AVALAI_API_KEY": KEY,
        "AVALAI_BASE_URL": endpoint.base_url,
        "EMBED_MODEL": "trigrams",
        "EMBED_DIM": str(DIMENSION),
        "EMBED_TIMEOUT_SECONDS": str(DEADLINE_SECONDS),
        "EMBED_MAX_CALLS": str(MAX_CALLS),
    }


def wait_until_ready(url: str) -> None:
    """Wait until the vectors of the set take part."""
    for _ in range(300):
        try:
            if httpx.get(f"{url}/healthz").json()["dense_search"]:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit("the server was not ready within 30 s")


async def ask(client: httpx.AsyncClient, url: str, question: str, seen: Seen) -> None:
    """Make one call and note how it went."""
    arguments = {"question": question, "max_context_chars": 500}
    call = {"name": "ask_docs", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    started = time.perf_counter()
    try:
        response = await client.post(f"{url}/mcp", json=body, timeout=30)
        result = response.json()["result"]
        answer = json.loads(result["content"][0]["text"])
    except (httpx.HTTPError, ValueError, KeyError) as error:
        seen.failed[type(error).__name__] += 1
        return
    seen.seconds.append(time.perf_counter() - started)
    if not answer["citations"]:
        seen.failed["no passages"] += 1
    if reason := re.search(r"\((\w+)\)", answer.get("degraded", "")):
        seen.degraded[reason[1]] += 1


async def run_client(number: int, url: str, until: float, seen: Seen) -> None:
    """Ask questions, half of which others ask too, until the time is up."""
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(headers=headers) as client:
        for turn in itertools.count():
            if time.perf_counter() >= until:
                return
            word = WORDS[(number + turn) % len(WORDS)]
            question = f"{word} {turn // 4}" if turn % 2 else f"{word} {number} {turn}"
            await ask(client, url, question, seen)
            await asyncio.sleep(PAUSE_SECONDS)


async def change_phases(endpoint: Endpoint, until: float) -> None:
    """Let the endpoint go from one behaviour to the next."""
    for mode in itertools.cycle(PHASES):
        endpoint.mode = mode
        if mode == "held":
            endpoint.gate.clear()
        else:
            endpoint.gate.set()
        await asyncio.sleep(PHASE_SECONDS)
        if time.perf_counter() >= until:
            return


async def count_connections(endpoint: Endpoint, until: float, seen: Seen) -> None:
    """Note the most connections that the endpoint has open."""
    while time.perf_counter() < until:
        seen.most_connections = max(seen.most_connections, endpoint.open_connections())
        await asyncio.sleep(0.02)


async def soak(url: str, endpoint: Endpoint, clients: int, seconds: float) -> Seen:
    """Ask for so many seconds."""
    seen = Seen()
    until = time.perf_counter() + seconds
    await asyncio.gather(
        change_phases(endpoint, until),
        count_connections(endpoint, until, seen),
        *(run_client(number, url, until, seen) for number in range(clients)),
    )
    return seen


def metric(text: str, name: str, **labels: str) -> float:
    """Return the sum of a metric's samples that have these labels."""
    total = 0.0
    for line in text.splitlines():
        found = re.fullmatch(rf"liara_docs_mcp_{name}(\{{.*\}})? (\S+)", line)
        wanted = all(f'{key}="{value}"' in line for key, value in labels.items())
        if found and wanted:
            total += float(found[2])
    return total


def report(seen: Seen, metrics: str) -> bool:
    """Print what was seen; return whether everything holds."""
    p95 = statistics.quantiles(seen.seconds, n=100)[94]
    queries = metric(metrics, "dense_queries_total")
    cached = {
        result: metric(metrics, "query_cache_total", cache="process", result=result)
        for result in ("hit", "miss")
    }
    counted = {
        reason: metric(metrics, "dense_dropouts_total", reason=reason) for reason in seen.degraded
    }
    checks = {
        "no request failed": not seen.failed,
        f"p95 within {DEADLINE_SECONDS} s + 50 ms": p95 <= DEADLINE_SECONDS + 0.05,
        f"at most {MAX_CALLS} connections": 0 < seen.most_connections <= MAX_CALLS,
        "every query is counted": queries == len(seen.seconds),
        "every query asked the cache": sum(cached.values()) == queries,
        "dropouts by reason as the clients saw them": counted == dict(seen.degraded),
        "the breaker opened": metric(metrics, "breaker_opened_total") > 0,
    }
    print(
        f"{len(seen.seconds)} answers, p50 {statistics.median(seen.seconds):.3f} s, p95 {p95:.3f} s"
    )
    print(f"degraded: {dict(seen.degraded)}; failed: {dict(seen.failed)}")
    print(f"connections: {seen.most_connections}; cache: {cached}")
    print(
        f"calls: {metric(metrics, 'embedding_calls_total'):.0f},"
        f" retries: {metric(metrics, 'embedding_retries_total'):.0f},"
        f" breaker opened: {metric(metrics, 'breaker_opened_total'):.0f}"
    )
    for name, holds in checks.items():
        print(f"{'ok  ' if holds else 'FAIL'} {name}")
    return all(checks.values())


def main(clients: int = CLIENTS, seconds: float = SECONDS) -> bool:
    """Serve, soak, report."""
    # The endpoint cuts answers short on purpose.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as name, serving_embeddings() as endpoint:
        port = free_port()
        command = [sys.executable, "-m", "app", "serve"]
        server = subprocess.Popen(command, env=environment(Path(name), endpoint, port))
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_ready(url)
            seen = asyncio.run(soak(url, endpoint, clients, seconds))
            metrics = httpx.get(f"{url}/metrics", timeout=30).text
        finally:
            endpoint.gate.set()
            server.send_signal(signal.SIGTERM)
            server.wait(30)
    return report(seen, metrics)


if __name__ == "__main__":
    sys.exit(not main(*(int(argument) for argument in sys.argv[1:3])))
