"""The server's keys: one from the command line, or several from a file.

keys:
- name: ci                    # in logs and metrics; the key itself is in neither
sha256: 9f86d081...         # of the key: printf %s KEY | sha256sum; or `key:`, the key
requests_per_minute: 60     # all limits are optional
tokens_per_minute: 20000    # of prompts and outputs together
concurrent: 4
models: [demo]              # other models do not exist for this key
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from wherry.errors import UsageError, listing

from .quota import Limits, Quota

_log = logging.getLogger(__name__)
SHORTEST = 16  # minimum number of characters, so that a key cannot be guessed over the network
_OTHERS_READ = 0o077

_Count = Annotated[int, Field(ge=1, strict=True)]


class Key:
    """A key of the server.

    Args:
        name: the key's name in logs and metrics.
        digest: SHA-256 of the key.
        limits: the key's limits on requests and tokens.
        models: names of the models that the key may use; None: all.
    """

    def __init__(
        self,
        name: str,
        digest: bytes,
        limits: Limits | None = None,
        models: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.digest = digest
        self.quota = Quota(limits or Limits())
        self.models = None if models is None else frozenset(models)


class KeyRing:
    """All keys of a server.

    Args:
        api_key: a key without limits.
        path: a file of further keys; `reload` reads it again.

    Raises:
        UsageError: the file cannot be used; the message lists everything that is wrong.
    """

    def __init__(self, api_key: str | None = None, path: Path | None = None) -> None:
        self._path = path
        self._own = [Key("default", digest_of(api_key.encode()))] if api_key else []
        self._keys = self._own + (read(path) if path else [])

    def __bool__(self) -> bool:
        return bool(self._keys) or self._path is not None

    def find(self, given: bytes) -> Key | None:
        """Return the key with these bytes; all are compared, so that the time reveals nothing."""
        digest, match = digest_of(given), None
        for key in self._keys:
            if hmac.compare_digest(key.digest, digest):
                match = key
        return match

    def reload(self) -> None:
        """Read the file of keys again; usage counts stay if a key's limits stay the same.

        Raises:
            UsageError: the file cannot be used; the keys stay as they are.
        """
        if self._path is None:
            return
        used = {(key.name, key.quota.limits): key.quota for key in self._keys}
        keys = read(self._path)
        for key in keys:
            key.quota = used.get((key.name, key.quota.limits), key.quota)
        self._keys = self._own + keys


def digest_of(key: bytes) -> bytes:
    """Return the SHA-256 of a key, the only form in which it is stored."""
    return hashlib.sha256(key).digest()


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(pattern=r"^[\w.@ -]{1,64}$")
    key: str | None = Field(None, min_length=SHORTEST)
    sha256: str | None = Field(None, pattern="^[0-9a-fA-F]{64}$")
    requests_per_minute: _Count | None = None
    tokens_per_minute: _Count | None = None
    concurrent: _Count | None = None
    models: list[str] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> _Entry:
        if (self.key is None) == (self.sha256 is None):
            raise ValueError("takes either key or sha256")
        return self

    def as_key(self) -> Key:
        digest = digest_of(self.key.encode()) if self.key else bytes.fromhex(self.sha256 or "")
        limits = Limits(
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            concurrent=self.concurrent,
        )
        return Key(self.name, digest, limits, self.models)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    keys: list[_Entry] = Field(min_length=1)


def read(path: Path) -> list[Key]:
    """Return the keys in a file.

    Raises:
        UsageError: the file is wrong; the message lists everything that is, and no key.
    """
    try:
        document = yaml.safe_load(path.read_text())
        entries = _File.model_validate(document).keys
    except (OSError, UnicodeDecodeError) as e:
        raise UsageError(f"The keys of {path} cannot be read: {e}") from e
    except yaml.YAMLError as e:
        where = getattr(e, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise UsageError(f"{path}{line} is not YAML: {getattr(e, 'problem', e)}") from None
    except ValidationError as e:
        raise UsageError(f"{path} is not a file of keys:\n{listing(_problems(e))}") from None
    keys = [entry.as_key() for entry in entries]
    if twice := [n for n, count in Counter(key.name for key in keys).items() if count > 1]:
        raise UsageError(f"{path}: several keys are named {', '.join(map(repr, twice))}")
    if len({key.digest for key in keys}) < len(keys):
        raise UsageError(f"{path}: two names have the same key")
    _warn_if_open(path, entries)
    return keys


def _problems(error: ValidationError) -> list[str]:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return [f"{'.'.join(map(str, p['loc'])) or 'the file'}: {p['msg']}" for p in errors]


def _warn_if_open(path: Path, entries: Sequence[_Entry]) -> None:
    if any(e.key for e in entries) and path.stat().st_mode & _OTHERS_READ:
        _log.warning("%s holds keys, and others may read it. Type: chmod 600 %s", path, path)
