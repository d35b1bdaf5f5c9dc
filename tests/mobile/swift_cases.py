"""Runs the Swift package's tests on cases of Python's engine, and compares the answers to them.

    python -m tests.mobile.swift_cases swift test --package-path mobile/ios ...

The command finds the cases' file in the environment variable WHERRY_TEST_CASES:
{"folder": a compiled model, "options": for wherry_app_open, "text": what Python's engine writes,
"table": a file of request_table.py whose requests are texts, "answers": the file to
write, with the JSON of each object as a text, "embedder": a model of ..app.vector_models,
"servers": {name: address of a folder of `download_servers`}}
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine

from ..app.model_server import ModelServer, folder_of
from .request_table import RequestTable

BIG = "params_shard_0.bin"
FILES = {BIG: bytes(range(250)) * 2000, "tokenizer.json": b"{}"}
PROMPT = "Once upon a time"  # as EngineTests.swift has it


@contextmanager
def download_servers() -> Iterator[dict[str, ModelServer]]:
    """Servers that do what their names say."""
    with ExitStack() as stack:
        names = ("whole", "damaged", "gone", "hanging")
        opened = {name: stack.enter_context(ModelServer(folder_of(FILES))) for name in names}
        opened["damaged"].bodies[BIG] = [bytes(len(FILES[BIG]))]
        opened["gone"].statuses[BIG] = [404] * 9
        opened["hanging"].cuts[BIG] = [100_000] * 9
        opened["hanging"].hangs = True
        yield opened


def main(command: list[str]) -> None:
    """Run the command with the cases of the demo model on this machine's CPU."""
    demo = ensure_artifact("demo", target="cpu")
    spec = importlib.util.find_spec("tvm")
    assert spec is not None
    assert spec.origin is not None
    runtime = Path(spec.origin).parent / "lib" / "libtvm_runtime.so"
    with (
        tempfile.TemporaryDirectory() as temporary,
        MLCEngine(demo, threads=1) as engine,
        download_servers() as servers,
    ):
        folder = Path(temporary)
        table = RequestTable(demo, folder)
        # a request as a text keeps the order of its fields, which the prompt of a template shows
        groups = [{**g, "requests": [*map(json.dumps, g["requests"])]} for g in table.groups]
        (folder / "table.json").write_text(json.dumps(groups))
        answer = engine.completions.create(prompt=PROMPT, temperature=0, max_tokens=24)
        cases = {
            "folder": str(demo),
            "options": {"runtime": str(runtime), "threads": 1},
            "text": answer.choices[0].text,
            "table": str(folder / "table.json"),
            "answers": str(folder / "answers.json"),
            "embedder": str(table.vectors["embedder"]),
            "servers": {name: server.url for name, server in servers.items()},
        }
        (folder / "cases.json").write_text(json.dumps(cases))
        environment = {**os.environ, "WHERRY_TEST_CASES": str(folder / "cases.json")}
        subprocess.run(command, check=True, env=environment)
        texts = json.loads((folder / "answers.json").read_text())
        answers = [[list(map(json.loads, answer)) for answer in group] for group in texts]
        table.check_demo(answers[0], engine)
        table.check_templates(answers[1])
        table.check_tools(table.check_vectors(answers[2:]))
    print(f"{sum(map(len, answers))} requests are answered as Python does")


if __name__ == "__main__":
    main(sys.argv[1:])
