"""What both paths share; knows nothing of MCP, HTTP, git or Markdown."""
