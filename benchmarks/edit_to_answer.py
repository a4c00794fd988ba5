"""Time from the edit of one file to an answer that holds it, in a local set of 2,000 files.

With the watcher, as a server runs, and without it, as on a network mount: then only the stat
fingerprint at the ask finds the edit. Run: python -m benchmarks.edit_to_answer [files] [rounds]
"""

import asyncio
import random
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from app.library.library import DocumentLibrary
from app.models import DocumentSetSpec
from app.retrieval.search import search

FILES = 2000
ROUNDS = 10
TARGET_SECONDS = 1.5
SET_ID = "handbook"


def write_page(folder: Path, number: int, words: list[str], extra: str = "") -> Path:
    """Write one page of about 3 KB with headings, prose, a list and code."""
    chosen = random.Random(number)
    parts = [f"# Page {number}", extra]
    for section in range(4):
        prose = " ".join(chosen.choices(words, k=90))
        parts += [f"## Section {section}", prose, "- one\n- two", f"```sh\nrun {number}\n```"]
    file = folder / f"part{number % 40}" / f"page{number}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return file


async def answered(library: DocumentLibrary, word: str) -> bool:
    """Ask for a word, as ask_docs does, and say whether the best passage holds it."""
    answering = await library.for_answer(SET_ID)
    result = await asyncio.to_thread(search, answering.index, word, top_k=3)
    return any(word in hit.chunk.text for hit in result.hits)


async def measure(
    library: DocumentLibrary, folder: Path, words: list[str], rounds: int, marker: str
) -> list[float]:
    """Return the seconds of each round: edit a page, then ask until the answer holds the edit."""
    seconds = []
    for number in range(rounds):
        word = f"{marker}{number}"
        started = perf_counter()
        write_page(folder, number * 7, words, extra=f"The word is {word} here.")
        while not await answered(library, word):
            pass
        seconds.append(perf_counter() - started)
        await asyncio.sleep(0.3)
    return seconds


async def run(files: int, rounds: int) -> dict[str, list[float]]:
    """Build a set of so many files and measure both ways of noticing an edit."""
    words = [
        f"{a}{b}" for a in ("lor", "ips", "dol", "amet", "con") for b in ("em", "um", "ra", "i")
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / SET_ID
        for number in range(files):
            write_page(folder, number, words)
        spec = DocumentSetSpec(id=SET_ID, source=str(folder))
        library = DocumentLibrary([spec], data_dir=Path(name) / "data")
        started = perf_counter()
        status = await library.refresh(SET_ID)
        chunks = status.index.chunks if status.index else 0
        print(f"first build: {files} files, {chunks} chunks, {perf_counter() - started:.1f} s")
        results = {"at the ask": await measure(library, folder, words, rounds, "quokka")}
        async with library.run():
            await asyncio.sleep(1)
            results["with the watcher"] = await measure(library, folder, words, rounds, "wombat")
        return results


def main(files: int = FILES, rounds: int = ROUNDS) -> None:
    """Print a line for each way."""
    for way, seconds in asyncio.run(run(files, rounds)).items():
        print(
            f"edit to answer, {way}: median {statistics.median(seconds):.2f} s, "
            f"worst {max(seconds):.2f} s (target under {TARGET_SECONDS} s)"
        )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
