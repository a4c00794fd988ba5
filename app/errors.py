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
"""


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
