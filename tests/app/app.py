"""A compiled folder that talks, as a program that is asked through pipes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .programs import BUILD


def runtime() -> Path:
    """TVM's run time, which the program opens."""
    spec = importlib.util.find_spec("tvm")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "lib" / "libtvm_runtime.so"


def refused(folder: Path, **options: Any) -> str:
    """What the program says of a folder that it cannot open."""
    options = {"runtime": str(runtime()), **options}
    done = subprocess.run(
        [str(BUILD / "wherry_app_lines"), str(folder), json.dumps(options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


class App:
    """The program, and what it says of each request; `prefix` precedes its command."""

    def __init__(self, folder: Path, *, prefix: Sequence[str] = (), **options: Any) -> None:
        # One thread: those of a pool look for work for some time before they end with their engine.
        options = {"runtime": str(runtime()), "threads": 1, **options}
        self._process = subprocess.Popen(
            [*prefix, str(BUILD / "wherry_app_lines"), str(folder), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._chunks: defaultdict[str, list[Any]] = defaultdict(list)
        self._ids: dict[str, str] = {}
        self._last: dict[str, Any] = {}
        self._number = 0
        assert self._read() == "ok open"

    @property
    def pid(self) -> int:
        """Number of the program's process."""
        return self._process.pid

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().rstrip("\n")
        assert line, f"it ended with {self._process.wait()}"
        kind, _, rest = line.partition(" ")
        if kind in ("chunk", "last", "started"):
            number, _, text = rest.partition(" ")
            if kind == "started":
                self._ids[number] = text
            elif kind == "chunk":
                self._chunks[number].append(json.loads(text))
            else:
                self._last[number] = json.loads(text)
        return line

    def say(self, line: str) -> None:
        """A line for the program."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def start(self, **fields: Any) -> str:
        """Begin a request; the number under which its JSON comes."""
        self._number += 1
        self.say(f"n{self._number} {json.dumps(fields)}")
        return f"n{self._number}"

    def chunks(self, number: str, at_least: int) -> list[Any]:
        """Wait for a number of chunks."""
        while len(self._chunks[number]) < at_least and number not in self._last:
            self._read()
        return self._chunks[number]

    def all(self, number: str) -> list[Any]:
        """All that a request has given."""
        while number not in self._last:
            self._read()
        return [*self._chunks[number], self._last[number]]

    def ask(self, **fields: Any) -> Any:
        """The last JSON of a request."""
        return self.all(self.start(**fields))[-1]

    def command(self, line: str) -> str:
        """The answer to a command."""
        self.say(line)
        while not (answer := self._read()).startswith(("ok", "error")):
            pass
        return answer

    def abort(self, number: str) -> str:
        """Abort a request."""
        while number not in self._ids:
            self._read()
        return self.command(f"abort {self._ids[number]}")

    def stats(self) -> Any:
        """The app's counters."""
        return json.loads(self.command("stats").removeprefix("ok "))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(timeout=60) == 0
