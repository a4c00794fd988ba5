import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

# Prints from a thread, in each way that a library might, once the server has claimed its streams.
STRAY_PRINTS = """
import os, sys, threading
first = os.fstat(1).st_ino, os.fstat(1).st_dev
def stray():
    while (os.fstat(1).st_ino, os.fstat(1).st_dev) == first:
        pass
    print("stray print")
    sys.stdout.write("stray write without an end")
    os.write(1, b"stray bytes\\n")
    os.system("echo stray child")
threading.Thread(target=stray, daemon=True).start()
from app.cli import main
sys.exit(main(["stdio"]))
"""


@pytest.fixture(params=["legacy", "2026-07-28"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.anyio
async def test_a_client_over_stdio_finds_the_right_page_first(
    environ: dict[str, str], era: str
) -> None:
    # No subcommand: this is how clients start such servers.
    command = StdioServerParameters(command=sys.executable, args=["-m", "app"], env=environ)
    async with Client(command, mode=era) as client:  # type: ignore[arg-type]
        tools = {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("search_docs", {"query": "environment variables"})
    assert {"search_docs", "reindex"} <= tools
    assert "https://docs.liara.ir/" in str(getattr(answer.content[0], "text", ""))


def request(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


@pytest.fixture
def process(environ: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """A stdio server in which something else prints, too."""
    # As most people start it: the interpreter's own switch would hide a buffer that is left.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", STRAY_PRINTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=buffered | environ,
        cwd=Path(__file__).parents[2],
    ) as started:
        yield started
        started.kill()


def test_nothing_but_json_rpc_is_on_standard_output_whatever_else_prints(
    process: "subprocess.Popen[str]",
) -> None:
    client = {"name": "test", "version": "1"}
    hello = request(
        1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(hello)
    process.stdin.flush()
    lines = [process.stdout.readline()]
    process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    process.stdin.write(request(2, "tools/call", name="search_docs", arguments={"query": "disk"}))
    process.stdin.flush()
    lines.append(process.stdout.readline())
    strays = ""
    while "stray child" not in strays:
        strays += process.stderr.readline()
    process.stdin.close()
    lines += process.stdout.read().splitlines()
    assert process.wait(10) == 0
    assert [json.loads(line)["id"] for line in lines] == [1, 2]
    assert "stray print" in strays + process.stderr.read()


def test_the_process_ends_when_its_client_closes_the_pipe_without_a_word(
    process: "subprocess.Popen[str]",
) -> None:
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(10) == 0


def test_a_client_that_never_reads_standard_error_is_served_to_the_end(
    environ: dict[str, str],
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "app"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | environ | {"LOG_LEVEL": "DEBUG"},
        cwd=Path(__file__).parents[2],
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            for number in range(1, 400):
                process.stdin.write(request(number, "ping", padding="x" * 500))
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["id"] == number
            process.stdin.close()
            assert process.wait(10) == 0
        finally:
            process.kill()
