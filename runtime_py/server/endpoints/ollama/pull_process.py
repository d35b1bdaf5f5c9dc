"""The process of one pull: downloads, converts and compiles, and writes its progress.

    python -c "from wherry.runtime.server.endpoints.ollama.pull_process import main; main()" \
        '["hf://ORG/NAME", {"quant": "q8f16_1"}]'

writes a JSON line for each step, {"what", "done", "total"}, and at the end {"folder"} or {"error"}.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from wherry.errors import WherryError

from ....load import loading

_SECONDS = 0.2  # minimum seconds between two lines of the same phase


class _Report:
    def __init__(self) -> None:
        self._last = ("", 0.0)  # the phase and time of the last line

    def __call__(self, what: str, done: int, total: int) -> None:
        phase, reported = self._last
        if what == phase and done < total and time.monotonic() - reported < _SECONDS:
            return
        self._last = what, time.monotonic()
        _say({"what": what, "done": done, "total": total})


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Pull the model that the first command-line argument names."""
    model, options = json.loads(sys.argv[1])
    try:
        _say({"folder": str(loading.resolve(model, **options, progress=_Report()).absolute())})
    except WherryError as e:
        _say({"error": str(e)})
