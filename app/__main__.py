"""`python -m app`: the same as the command `liara-docs-mcp`."""

import sys

from app.cli import main

sys.exit(main())
