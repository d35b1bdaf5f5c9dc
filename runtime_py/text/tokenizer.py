"""A model's tokenizer: tokenizer.json through the `tokenizers` library, and special token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from wherry.artifact.tokenizer_file import MOST_IDS, read_tokenizer
from wherry.base.json_file import read_object
from wherry.errors import ModelError

from ..caller import Caller
from .token_bytes import TokenBytes, token_bytes_of
from .token_cover import TokenCover, token_cover

# Fields of tokenizer_config.json that name a special token; templates use them as variables.
_SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")

_SHORT = 2**16  # characters up to which a text is tokenized without a check of its length
_BLOCK = 2**17  # characters that are tokenized at once while tokens are counted
# upper bound of a token's mean bytes in a long text: more than any language has
_BYTES_PER_TOKEN = 32


class TooManyTokens(Exception):
    """A text has too many tokens, which was found before the whole text was tokenized.

    Attributes:
        at_least: a lower bound of the text's number of tokens.
    """

    def __init__(self, at_least: int) -> None:
        super().__init__(f"at least {at_least} tokens")
        self.at_least = at_least


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; {} if the file does not exist.

    Raises:
        ModelError: the file is not a JSON object.
    """
    if not path.is_file():
        return {}
    try:
        return read_object(path)
    except OSError as e:
        raise ModelError(f"{path} cannot be read: {e.strerror}.") from e
    except ValueError as e:
        raise ModelError(f"{path} is not JSON, or no object: {e}.") from e


class Tokenizer:
    """Converts text to ids and back.

    Args:
        backend: the library's tokenizer; truncation and padding are off.
        config: the content of tokenizer_config.json.
        eos_ids: token ids that end a text; `from_folder` collects them.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        config: Mapping[str, Any] | None = None,
        eos_ids: Sequence[int] = (),
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.special_tokens = _special_tokens(config or {})
        added = backend.get_added_tokens_decoder()
        self.special_ids = frozenset(i for i, token in added.items() if token.special)
        named = [self.special_tokens.get("eos_token")]
        from_names = [i for n in named if n and (i := backend.token_to_id(n)) is not None]
        self.eos_ids = tuple(dict.fromkeys([*eos_ids, *from_names]))
        self._known_pieces: dict[int, bytes] = {}  # a cache whose size the vocabulary limits

    @classmethod
    def from_folder(cls, folder: Path) -> Tokenizer:
        """Return the tokenizer of a model folder.

        The ids that end a text come from generation_config.json, config.json and the eos_token of
        tokenizer_config.json together: many chat models name their end of turn in only one.

        Raises:
            ModelError: tokenizer.json is missing or damaged, or it cannot encode.
        """
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelError(
                f"{folder} has no tokenizer.json. Conversion makes one of tokenizer.model, "
                "tiktoken.model, tekken.json or vocab.json, with the extra wherry[tokenizers]; "
                "this model has none of them."
            )
        backend = read_tokenizer(path)
        config = read_json(folder / "special_tokens_map.json")
        config |= read_json(folder / "tokenizer_config.json")
        eos = [
            i
            for name in ("generation_config.json", "config.json")
            for i in _eos_ids(read_json(folder / name), folder / name)
        ]
        return cls(backend, config, eos)

    @property
    def vocab_size(self) -> int:
        """Return the number of token ids with added tokens; a model may have more logits."""
        return self.backend.get_vocab_size(with_added_tokens=True)

    @cached_property
    def token_bytes(self) -> TokenBytes | None:
        """Return the bytes of each token; None if the decoder does not work token by token."""
        return token_bytes_of(self.backend)

    @cached_property
    def _cover(self) -> TokenCover | None:
        return token_cover(self.backend)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the token ids of a text.

        `add_special_tokens` adds the model's BOS and the like.
        """
        # The library's batch method releases the GIL, unlike its method for one text.
        (encoding,) = self.backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        return encoding.ids

    def encode_at_most(
        self, text: str, limit: int, caller: Caller, *, add_special_tokens: bool = True
    ) -> list[int]:
        """Return token ids as `encode`, for an untrusted text; `limit` bounds time and memory.

        Raises:
            TooManyTokens: the text's bytes prove that it has too many tokens, or it has more than
                32 bytes a token, or twice
                the limit when it is tokenized in blocks. A text slightly over the limit is
                returned, and the caller checks it.
            Abandoned: the client has gone.
        """
        if len(text) > _SHORT:
            self._refuse_long(text, limit, caller)
        return self.encode(text, add_special_tokens=add_special_tokens)

    def encode_pair(
        self, first: str, second: str, limit: int, caller: Caller
    ) -> tuple[list[int], list[int]]:
        """Return token ids of two texts with the special tokens of a pair, and their segments.

        Raises as `encode_at_most`, for either text.
        """
        for text in (first, second):
            if len(text) > _SHORT:
                self._refuse_long(text, limit, caller)
        (encoding,) = self.backend.encode_batch([(first, second)], add_special_tokens=True)
        return encoding.ids, encoding.type_ids

    def _refuse_long(self, text: str, limit: int, caller: Caller) -> None:
        if len(text) > limit * _BYTES_PER_TOKEN:
            raise TooManyTokens(limit + 1)
        if self._cover is not None and (least := self._cover.at_least(text)) > limit:
            raise TooManyTokens(least)
        count = 0
        for at in range(0, len(text), _BLOCK):
            caller.check()
            count += len(self.encode(text[at : at + _BLOCK], add_special_tokens=False))
            if count > 2 * limit + len(text) // _BLOCK:
                raise TooManyTokens(limit + 1)
        caller.check()

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of all token ids, decoded together."""
        return self.backend.decode(list(ids), skip_special_tokens=skip_special_tokens)

    def ids_with(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Return the ids of tokens that contain one of these texts, except special tokens."""
        encoded = [text.encode() for text in texts]
        return tuple(i for i, piece in self._pieces if any(text in piece for text in encoded))

    @cached_property
    def _pieces(self) -> list[tuple[int, bytes]]:
        known = sorted(self.backend.get_vocab(with_added_tokens=True).values())
        return [(i, self.piece(i)) for i in known if i not in self.special_ids]

    def is_text(self, token: int) -> bool:
        """Tell whether a token stands for text: its id is known, and it is not special."""
        return token not in self.special_ids and self.backend.id_to_token(token) is not None

    def is_special(self, name: str) -> bool:
        """Tell whether this is the name of a special token."""
        return self.special_id(name) is not None

    def knows(self, name: str) -> bool:
        """Tell whether this is the name of a token."""
        return self.backend.token_to_id(name) is not None

    def special_id(self, name: str) -> int | None:
        """Return the id of a special token by name, or None."""
        token = self.backend.token_to_id(name)
        return token if token in self.special_ids else None

    def piece(self, token: int) -> bytes:
        """Return the text of one token in bytes, for logprobs; special tokens appear by name."""
        known = self._known_pieces.get(token)
        if known is None:  # cached, because a response asks for twenty texts for each token
            known = self._known_pieces[token] = self._piece_of(token)
        return known

    def _piece_of(self, token: int) -> bytes:
        if token not in self.special_ids and self.token_bytes is not None:
            return self.token_bytes(token)
        if token in self.special_ids:
            return (self.backend.id_to_token(token) or "").encode()
        return self.decode([token]).encode()


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return special tokens by name.

    In the file a token is a string or an object with "content".
    """
    tokens = {}
    for name in _SPECIAL_NAMES:
        value = config.get(name)
        if isinstance(value, Mapping):
            value = value.get("content")
        if isinstance(value, str):
            tokens[name] = value
    return tokens


def _eos_ids(config: Mapping[str, Any], path: Path) -> list[int]:
    """Return eos_token_id, which is an int, a list or absent; multimodal models nest it."""
    nested = config.get("text_config")
    inside = nested.get("eos_token_id") if isinstance(nested, dict) else None
    value = config.get("eos_token_id", inside)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(i) is int and 0 <= i < MOST_IDS for i in ids):
        raise ModelError(
            f"{path}: eos_token_id is {shortened(value)}; it takes an id or a list of ids"
        )
    return ids


def shortened(value: object) -> str:
    """Return a value's text, shortened for an error message."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
