"""Which encoder a name means: a model of the endpoint, or one of this process.

endpoint:NAME    a model of the configured endpoint
local:NAME       a sentence-transformers id or folder
a/name           a sentence-transformers id
name             a model of the endpoint
none             no vectors: the set is never sent anywhere

"""

import logging
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from app.embeddings.budget import DailyBudget
from app.embeddings.cache import QUERY_TTL_SECONDS, QueryCache
from app.embeddings.encoder import Encoder
from app.embeddings.local import LocalEncoder, load_sentence_transformer
from app.embeddings.openai import (
    EmbeddingEndpoint,
    EndpointEncoder,
    EndpointOptions,
    no_key,
)
from app.embeddings.shared_cache import SharedCache
from app.errors import OptionalDependencyError, SettingsError

logger = logging.getLogger(__name__)

_ENDPOINT, _LOCAL, _NONE = "endpoint:", "local:", "none"


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """What the operator chose for embeddings.

    `model` is what sets use that name none, `dimension` the length of that model's vectors at
    the endpoint. `daily_limit` bounds the calls to the endpoint.
    """

    endpoint: EndpointOptions
    model: str
    dimension: int
    daily_limit: int | None = None
    redis_url: str | None = field(default=None, repr=False)
    data_dir: Path | None = None


class Encoders:
    """The encoders of this process: one endpoint, one query cache, one encoder a model.

    Belongs to one event loop once an encoder is in use.
    """

    def __init__(self, options: EmbeddingOptions) -> None:
        """Take the options; nothing is connected or loaded yet.

        Raises:
            SettingsError: REDIS_URL or the CA bundle cannot be used.
        """
        self._options = options
        self.cache = QueryCache()
        self.shared, self.shared_error = _shared_cache(options.redis_url)
        budget_file = options.data_dir / "embedding-calls.json" if options.data_dir else None
        self.budget = DailyBudget(options.daily_limit, budget_file, self.shared)
        self.endpoint = EmbeddingEndpoint(options.endpoint, budget=self.budget)
        self._encoders: dict[str, Encoder] = {}

    def resolve(self, named: str | None) -> str | None:
        """Return the full name of the model that a set uses; None when it uses no vectors.

        Without a name of its own a set uses the default model, and the endpoint's only with a key.
        """
        if named is None:
            default = self._options.model
            if default.startswith(_LOCAL):
                return default
            if default == _NONE or self._options.endpoint.api_key is None:
                return None
            return _ENDPOINT + default.removeprefix(_ENDPOINT)
        if named == _NONE:
            return None
        if named.startswith((_ENDPOINT, _LOCAL)):
            return named
        return (_LOCAL if "/" in named else _ENDPOINT) + named

    def encoder(self, model: str) -> Encoder:
        """Return the encoder of a model, by its full name."""
        encoder = self._encoders.get(model)
        if encoder is None:
            encoder = self._encoders[model] = self._new(model)
        return encoder

    def check_configured(self, model: str) -> None:
        """Refuse a model of the endpoint when there is no key for it.

        Raises:
            DenseUnavailableError: There is no key.
        """
        if not model.startswith(_LOCAL) and self._options.endpoint.api_key is None:
            raise no_key()

    async def aclose(self) -> None:
        """Close connections and end threads."""
        for encoder in self._encoders.values():
            await encoder.aclose()
        self._encoders.clear()
        await self.endpoint.aclose()
        if self.shared is not None:
            await self.shared.aclose()

    def _new(self, model: str) -> Encoder:
        if model.startswith(_LOCAL):
            name = model.removeprefix(_LOCAL)
            return LocalEncoder(
                name,
                partial(load_sentence_transformer, name),
                cache=self.cache,
                timeout_seconds=self._options.endpoint.timeout_seconds,
            )
        name = model.removeprefix(_ENDPOINT)
        is_default = name == self._options.model.removeprefix(_ENDPOINT)
        return EndpointEncoder(
            self.endpoint,
            name,
            self._options.dimension if is_default else None,
            cache=self.cache,
            shared=self.shared,
        )


def _shared_cache(url: str | None) -> tuple[SharedCache | None, str | None]:
    """Return the cache of the replicas, or why there is none although it is wanted."""
    if url is None:
        return None, None
    try:
        return SharedCache(url, ttl_seconds=QUERY_TTL_SECONDS), None
    except OptionalDependencyError as error:
        logger.error("%s; each process keeps its own query cache", error)
        return None, str(error)
    except ValueError:
        # The URL may hold a password.
        raise SettingsError(
            "REDIS_URL cannot be used: redis://, rediss:// or unix:// is expected."
        ) from None
