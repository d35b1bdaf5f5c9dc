"""What editors, type checkers and people are told: arguments, misspelled names, progress, repr."""

from __future__ import annotations

import inspect
import re
import sys
from typing import get_type_hints

import pytest

from wherry.base import progress
from wherry.errors import UsageError
from wherry.runtime import AsyncMLCEngine, MLCEngine, arguments, async_engine, engine
from wherry.runtime.host.request import of_arguments
from wherry.runtime.load import jit

KINDS = {
    "ChatCompletions": arguments.ChatArguments,
    "Completions": arguments.CompletionArguments,
    "Embeddings": arguments.EmbeddingArguments,
}
MISSPELLED = """
from wherry import MLCEngine
from wherry.runtime.answers import ChatCompletion

def ask(engine: MLCEngine) -> ChatCompletion:
    engine.chat.completions.create(mesages=[])
    engine.chat.completions.create(messages=[], top_k=0.5)
    return engine.chat.completions.create(messages=[{"role": "user", "content": "x"}], top_k=5)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_are_the_fields_of_requests(kind):
    typed = KINDS[kind]
    assert get_type_hints(typed)
    for create in (getattr(engine, kind).create, getattr(async_engine, f"Async{kind}").create):
        fields = inspect.signature(create).parameters["fields"]
        assert fields.annotation == f"Unpack[{typed.__name__}]"


@pytest.mark.nightly
def test_a_type_checker_refuses_what_is_misspelled(tmp_path):
    from mypy import api

    (tmp_path / "ask.py").write_text(MISSPELLED)
    said, _, code = api.run(["--strict", "--follow-imports=silent", str(tmp_path / "ask.py")])
    wrong = [line.split(":")[1] for line in said.splitlines() if ": error:" in line]
    assert code == 1 and set(wrong) == {"6", "7"}, said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"mesages": []}, r"'mesages' \(did you mean 'messages'\?\); accepted are"),
        ({"messages": [], "temprature": 1, "qqq": 2}, r"'qqq', 'temprature' \(did you mean 'tem"),
    ],
)
def test_a_misspelled_argument_is_named_with_its_nearest(fields, said):
    with pytest.raises(UsageError, match=f"Unknown arguments {said}"):
        of_arguments("chat", fields)
    with pytest.raises(TypeError, match=r"'contxt' \(did you mean 'context'\?\)"):
        MLCEngine("demo", contxt=1)


def test_what_clients_of_other_servers_send_is_accepted(make):
    messages = [{"role": "user", "content": "x"}]
    request = of_arguments("chat", {"messages": messages, "n_predict": 3, "store": True})
    with MLCEngine.of(make()) as small:
        answer = small.chat.completions.create(**request.fields)
    assert answer.usage.completion_tokens == 3


class Terminal:
    """Standard error that is a terminal, or none."""

    encoding = "utf-8"

    def __init__(self, is_terminal):
        self.is_terminal, self.text = is_terminal, ""

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.fixture
def slow(monkeypatch):
    """A model that reports its compilation, and then cannot be loaded."""

    def compiled(model, *, progress, **_):
        if progress:
            progress("prepare", 0, 1)
            progress("compile", 1, 2)
        raise UsageError("no further")

    monkeypatch.setattr(jit, "compiled", compiled)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("kind", [MLCEngine, AsyncMLCEngine])
@pytest.mark.parametrize(
    ("is_terminal", "options", "shown"),
    [(True, {}, True), (False, {}, False), (True, {"progress": None}, False)],
)
def test_a_load_shows_its_progress_to_a_person(
    slow, monkeypatch, capsys, kind, is_terminal, options, shown
):
    monkeypatch.setattr(sys, "stderr", screen := Terminal(is_terminal))
    with pytest.raises(UsageError, match="no further"):
        kind("demo", **options)
    assert ("Compiling" in screen.text) == shown and capsys.readouterr().out == ""


def test_a_notebook_shows_a_line_for_each_step(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Terminal(False))
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with progress.shown() as report:
        for done in range(3):
            report("compile", done, 2)
        report("download", 0, 2)
    assert screen.text == "Compiling ...\nDownloading ...\n"


def test_a_repr_tells(make):
    with MLCEngine.of(make()) as small:
        assert repr(small).startswith(f"<MLCEngine {small.loaded.name}: context of ")
        stream = small.completions.create(prompt="the", stream=True, max_tokens=1)
        assert re.match("<Stream: (running|ended), [0-9]+ chunks", repr(stream))
        list(stream)
        assert repr(stream) == "<Stream: ended, 0 chunks wait for their reader>"
