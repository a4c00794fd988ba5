"""Long synchronous work beside the event loop, in threads that never delay the end of a process."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T], *, name: str) -> T:
    """Run `work` in a thread of its own and wait for it.

    `asyncio.to_thread` would make the process wait at its end for a clone that takes minutes.
    What a job writes is published atomically, so it may be cut off at any point.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            # The loop has closed: nobody waits any more.
            return

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done
