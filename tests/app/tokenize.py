"""The C++ tokenizer, by the program wherry_tokenize (app/programs/tokenize.cc)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "build" / "dev" / "wherry_tokenize"


class TokenizerError(Exception):
    """The core's own text."""


class CoreTokenizer:
    """One tokenizer in a process of its own.

    Args:
        tokenizer_json: content of the file.

    Raises:
        TokenizerError: the core cannot read it; as from all methods.
    """

    def __init__(self, tokenizer_json: str | bytes | None = None) -> None:
        self._process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if tokenizer_json is not None:
            self.open(tokenizer_json)

    def open(self, tokenizer_json: str | bytes) -> None:
        assert self._ask(b"open", tokenizer_json) == b"ok"

    def __enter__(self) -> CoreTokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        assert self._process.returncode == 0

    def encode(self, text: str | bytes, *, add_special_tokens: bool = True) -> list[int]:
        return [int(i) for i in self._ask(b"encode", int(add_special_tokens), text).split()]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        return self._text(self._ask(b"decode", int(skip_special_tokens), list(ids))).decode()

    def piece(self, token: int) -> bytes:
        return self._text(self._ask(b"piece", token))

    def find(self, token: str) -> int | None:
        token_id = int(self._ask(b"find", token))
        return None if token_id < 0 else token_id

    def name(self, token: int) -> str:
        return self._text(self._ask(b"name", token)).decode()

    def vocab_size(self) -> int:
        return int(self._ask(b"size"))

    def detokenize(
        self, ids: Sequence[int], prompt: Sequence[int] = (), visible: Sequence[int] = ()
    ) -> list[str]:
        """A piece for each id, and one for the end."""
        first = self._ask(b"detokenize", list(prompt), list(visible), list(ids))
        return [self._text(first if i == 0 else None).decode() for i in range(len(ids) + 1)]

    def stop(self, stops: Sequence[str], chunks: Sequence[str]) -> tuple[list[str], str | None]:
        """What each chunk lets out, and the end; the string that was found."""
        first = self._ask(b"stop", len(stops), *stops, len(chunks), *chunks)
        given = [self._text(first if i == 0 else None).decode() for i in range(len(chunks) + 2)]
        return given[:-1], given[-1] or None

    def seconds(self, text: str) -> tuple[float, int]:
        """Processor time of encoding a text, and how many ids it has."""
        seconds, n = self._ask(b"time", text).split()
        return float(seconds), int(n)

    def _ask(self, command: bytes, *words: int | str | bytes | list[int]) -> bytes:
        assert self._process.stdin is not None
        parts = [command]
        for word in words:
            if isinstance(word, int):
                parts.append(b"%d" % word)
            elif isinstance(word, list):
                parts.append(b" ".join(b"%d" % i for i in [len(word), *word]))
            else:
                data = word.encode() if isinstance(word, str) else word
                parts.append(b"%d\n%s" % (len(data), data))
        self._process.stdin.write(b"\n".join(parts) + b"\n")
        self._process.stdin.flush()
        answer = self._line()
        if answer == b"error":
            raise TokenizerError(self._text(None).decode())
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.endswith(b"\n"), "wherry_tokenize has ended"
        return line[:-1]

    def _text(self, length: bytes | None) -> bytes:
        assert self._process.stdout is not None
        n = int(self._line() if length is None else length)
        return self._process.stdout.read(n + 1)[:n]
