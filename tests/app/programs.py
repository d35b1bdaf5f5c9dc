"""The programs of app/programs, which answer a line of JSON with a line of JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

BUILD = Path(__file__).parents[2] / "build" / "dev"


class Program:
    """A program that runs as long as it is asked."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [str(BUILD / command[0]), *command[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, **fields: Any) -> dict[str, Any]:
        """Its answer.

        Raises:
            AssertionError: it has ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(fields).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{self._process.args} ended with {self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=60) == 0 or error is not None
