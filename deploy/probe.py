"""Exit with 0 when the server of this container can answer, else with 1: its health check."""

import sys
from http.client import HTTPConnection, HTTPException

from app.settings import Settings

# Below the timeout of the health check, so that the reason is printed.
TIMEOUT_SECONDS = 4


def problem(port: int) -> str | None:
    """Return why the server on this machine cannot answer, or None when it can."""
    # Not urllib: that would ask through the proxy of the environment.
    connection = HTTPConnection("localhost", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"port {port}: {error or type(error).__name__}"
    finally:
        connection.close()
    return None if status == 200 else f"port {port}: /readyz answers {status}"


if __name__ == "__main__":
    sys.exit(problem(Settings.from_env().port))
