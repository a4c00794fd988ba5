"""liara-docs-mcp: a documentation server that coding assistants ask over MCP.

A request, from HTTP to answer: server/application.py, server/liara_tools.py or
server/docs_tools.py, library/library.py, retrieval/search.py, index/, server/rendering.py.
A document, from source to index: library/refresh.py, ingestion/ingest.py, ingestion/sources.py,
ingestion/markdown.py, ingestion/chunker.py, index/snapshot.py.
Imports go one way: server -> library -> {retrieval, ingestion} -> index; embeddings and liara are
leaves beside index; models and errors lie below everything. Only cli.py and
server/application.py read settings.
"""

__version__ = "0.1.0"
