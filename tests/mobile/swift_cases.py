"""What the Swift package's tests read: python -m tests.mobile.swift_cases FILE.

{"folder": a compiled model, "options": for wherry_app_open, "text": what Python's engine writes}
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine

PROMPT = "Once upon a time"  # as EngineTests.swift has it


def main(out: Path) -> None:
    """Write the file, for the demo model on this machine's CPU."""
    folder = ensure_artifact("demo", target="cpu")
    with MLCEngine(folder) as engine:
        answer = engine.completions.create(prompt=PROMPT, temperature=0, max_tokens=24)
    spec = importlib.util.find_spec("tvm")
    assert spec is not None
    assert spec.origin is not None
    runtime = Path(spec.origin).parent / "lib" / "libtvm_runtime.so"
    cases = {
        "folder": str(folder),
        "options": {"runtime": str(runtime), "threads": 1},
        "text": answer.choices[0].text,
    }
    out.write_text(json.dumps(cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
