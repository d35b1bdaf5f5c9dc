"""ctypes binding of the core's grammars (engine/include/wherry.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_uint32
from ctypes import c_void_p as handle
from pathlib import Path

from wherry.errors import UsageError, WherryError

from ..core.abi import int32s
from ..core.records import Mask


def _check(api: ctypes.CDLL, status: int) -> None:
    if status:
        message = (api.wherry_last_error() or b"").decode(errors="replace")
        raise (UsageError if status == -1 else WherryError)(message)


class Vocabulary:
    r"""The tokens of a model, in the form that the core's grammars need.

    Args:
        api: the loaded libwherry.
        library: path of llguidance's library.
        tokens: the bytes of each token; b"" never matches; b"\xff" and a name is a special token.
    """

    def __init__(self, api: ctypes.CDLL, library: Path, tokens: Sequence[bytes]) -> None:
        self._api = api
        self._handle = handle()
        lengths = (c_uint32 * len(tokens))(*map(len, tokens))
        status = api.wherry_vocabulary_create(
            str(library).encode(), b"".join(tokens), lengths, len(tokens), byref(self._handle)
        )
        _check(api, status)

    def compile(self, kind: str, text: str) -> Grammar:
        """Compile a grammar on any thread; releases the GIL.

        Args:
            kind: "json_schema", "regex" or "lark".
            text: the grammar's source, without NUL characters.

        Raises:
            UsageError: the text is wrong or cannot be enforced.
        """
        compiled = handle()
        status = self._api.wherry_grammar_compile(
            self._handle, kind.encode(), text.encode(), byref(compiled)
        )
        _check(self._api, status)
        return Grammar(self._api, compiled)

    def __del__(self) -> None:
        if self._handle:
            self._api.wherry_vocabulary_free(self._handle)


class Grammar:
    """A compiled grammar, as `Vocabulary.compile` returns it; it keeps its vocabulary alive."""

    def __init__(self, api: ctypes.CDLL, compiled: handle) -> None:
        self._api = api
        self._handle = compiled

    def mask(self, stop_ids: Sequence[int]) -> Mask:
        """Return the mask of one request in its first state.

        The owner must call its `release`; wherry_engine_add does.
        """
        record = Mask()
        stops = int32s(stop_ids)
        status = self._api.wherry_grammar_mask(self._handle, stops, len(stop_ids), byref(record))
        _check(self._api, status)
        return record

    def __del__(self) -> None:
        if self._handle:
            self._api.wherry_grammar_free(self._handle)


class Walk:
    """Steps through a mask token by token from Python, for the probe and the tests.

    Args:
        record: a result of `Grammar.mask`, which this object releases.
        vocab_size: number of tokens.
    """

    def __init__(self, record: Mask, vocab_size: int) -> None:
        self._record = record
        self._bits = (c_uint32 * (-(-vocab_size // 32)))()

    def _check(self, status: int) -> None:
        if status:
            raise UsageError((self._record.error(self._record.context) or b"").decode())

    def allowed(self) -> list[int]:
        """Return the ids of the tokens that may come next, ascending."""
        everything = ctypes.c_int()
        words = len(self._bits)
        self._check(self._record.fill(self._record.context, self._bits, words, byref(everything)))
        bits = int.from_bytes(bytes(self._bits), "little")
        ids = []
        while bits:
            lowest = bits & -bits
            ids.append(lowest.bit_length() - 1)
            bits ^= lowest
        return ids

    def accept(self, token: int) -> bool:
        """Accept a token; return whether the output ends with it."""
        complete = ctypes.c_int()
        self._check(self._record.accept(self._record.context, token, byref(complete)))
        return bool(complete.value)

    def forced(self, most: int) -> list[int]:
        """Return the ids of the next tokens that the grammar forces, at most `most`."""
        tokens, n = (ctypes.c_int32 * most)(), ctypes.c_size_t()
        self._check(self._record.forced(self._record.context, tokens, most, byref(n)))
        return list(tokens[: n.value])

    def __del__(self) -> None:
        self._record.release(self._record.context)
