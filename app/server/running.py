"""The library while a server runs: loaded beside the event loop, then kept up to date."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from app.library.background import run_in_daemon_thread
from app.library.library import DocumentLibrary

logger = logging.getLogger(__name__)


class RunningLibrary:
    """Loads a library in the background and refreshes it until the server ends."""

    def __init__(self, library: DocumentLibrary) -> None:
        """Nothing is read before `serve`."""
        self.loaded = asyncio.Event()
        self._library = library

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Load and refresh the library while the context is open.

        The server listens at once: probes are answered while a starter index is being built.
        """
        task = asyncio.create_task(self._run(), name="library")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        try:
            await run_in_daemon_thread(self._library.load, name="library-load")
        except Exception:
            # The process stays up, not ready, and says so in /healthz.
            logger.exception("the library could not be loaded")
            return
        finally:
            self.loaded.set()
        async with self._library.run():
            await asyncio.Event().wait()
