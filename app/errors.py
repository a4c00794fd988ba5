"""Every error that crosses a module border.

DocsError
  InvalidArgumentError       the caller can fix it: shown to the model
    InvalidQueryError        the query has nothing to search for, or is too long
    UnknownPlatformError     no Liara platform of that name
    DocumentSetNotFoundError no document set of that id
    LayerNotFoundError       the document set has no such layer
    DocumentNotFoundError    no such page or file in the document set
  EmptySetError              the document set has no index yet: shown to the model
  UnusableFileError          ingestion: one file is skipped, with this reason
  SourceUnavailableError     ingestion: git, network or folder; one document set keeps what it has
  SnapshotError              load: the snapshot is of another format, or damaged
  SettingsError              start-up: names the variable and the accepted values
  ConfigError                start-up and reload: names the key of the JSON config
  OptionalDependencyError    names the extra to install
  DenseUnavailableError      the dense list drops out of a search or a build; carries a DenseReason
"""

from enum import StrEnum


class DocsError(Exception):
    """Base of every error that this program raises on purpose."""


class InvalidArgumentError(DocsError):
    """An argument that the caller can mend; the message says how."""


class InvalidQueryError(InvalidArgumentError):
    """The query is empty, too long, or holds nothing to search for."""


class UnknownPlatformError(InvalidArgumentError):
    """No Liara platform has this name or alias."""


class DocumentSetNotFoundError(InvalidArgumentError):
    """No document set has this id."""


class LayerNotFoundError(InvalidArgumentError):
    """The document set has no layer of this name."""


class DocumentNotFoundError(InvalidArgumentError):
    """The document set has no such page or file."""


class EmptySetError(DocsError):
    """The document set has no index yet."""


class UnusableFileError(DocsError):
    """A source file cannot be used; the message is the reason shown for it."""


class SourceUnavailableError(DocsError):
    """A source cannot be read now; secrets are already masked in the message."""


class SnapshotError(DocsError):
    """A snapshot is of another format or is damaged."""


class SettingsError(DocsError):
    """An environment variable has a value that cannot be used."""


class ConfigError(DocsError):
    """The JSON config cannot be used; the message names the key."""


class OptionalDependencyError(DocsError):
    """An optional package is missing; the message names the extra."""


class DenseReason(StrEnum):
    """Every way in which dense search can drop out; the values are labels of a metric."""

    NO_KEY = "no_key"
    NOT_INSTALLED = "not_installed"
    MODEL_UNAVAILABLE = "model_unavailable"
    NO_VECTORS = "no_vectors"
    VECTORS_DAMAGED = "vectors_damaged"
    CORPUS_MISMATCH = "corpus_mismatch"
    MODEL_MISMATCH = "model_mismatch"
    DIMENSION_MISMATCH = "dimension_mismatch"
    TIMEOUT = "timeout"
    BUSY = "busy"
    CONNECTION = "connection"
    STATUS = "status"
    MALFORMED = "malformed"
    WRONG_COUNT = "wrong_count"
    WRONG_DIMENSION = "wrong_dimension"
    NOT_FINITE = "not_finite"
    ZERO_VECTOR = "zero_vector"
    DEGENERATE = "degenerate"
    BREAKER_OPEN = "breaker_open"
    BUDGET_SPENT = "budget_spent"


class DenseUnavailableError(DocsError):
    """Dense search cannot take part; the message is for operators and agents, without secrets."""

    def __init__(self, reason: DenseReason, message: str) -> None:
        """Name the reason and say what happened."""
        super().__init__(message)
        self.reason = reason
