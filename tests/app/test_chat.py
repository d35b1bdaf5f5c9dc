"""The demo model over the C ABI of apps, against Python's engine on the same compiled folder."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.errors import UsageError
from wherry.runtime import MLCEngine

from .programs import BUILD

pytestmark = pytest.mark.cpu
ASK = [{"role": "user", "content": "Tell me a story about a fox."}]
GREEDY = {"temperature": 0, "max_tokens": 24}
TOOLS = [{"type": "function", "function": {"name": "now", "description": "The time"}}]


def runtime() -> Path:
    """TVM's run time, which the program opens."""
    spec = importlib.util.find_spec("tvm")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "lib" / "libtvm_runtime.so"


class App:
    """The program, and what it says of each request."""

    def __init__(self, folder: Path, **options: Any) -> None:
        options = {"runtime": str(runtime()), **options}
        self._process = subprocess.Popen(
            [str(BUILD / "wherry_app_lines"), str(folder), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._chunks: defaultdict[str, list[Any]] = defaultdict(list)
        self._ids: dict[str, str] = {}
        self._last: dict[str, Any] = {}
        self._asked = 0
        assert self._read() == "ok open"

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
        self._asked += 1
        self.say(f"n{self._asked} {json.dumps(fields)}")
        return f"n{self._asked}"

    def chunks(self, number: str, at_least: int) -> list[Any]:
        """Wait for so many chunks."""
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


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(ensure_artifact("demo", target="cpu"))


@pytest.fixture(scope="module")
def app(folder: Path) -> Iterator[App]:
    made = App(folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[MLCEngine]:
    with MLCEngine(folder) as made:
        yield made


def fixed(answer: Any) -> Any:
    """Without what differs from run to run; order of fields included."""
    answer = json.loads(json.dumps(answer))
    answer |= {"id": "", "created": 0}
    if answer.get("timings"):
        answer["timings"] = list(answer["timings"])
    if answer.get("usage"):  # what either engine has cached depends on what was asked before
        answer["usage"]["prompt_tokens_details"]["cached_tokens"] = 0
    return json.dumps(answer)


REQUESTS: list[dict[str, Any]] = [
    {"messages": ASK, **GREEDY},
    {"messages": ASK, **GREEDY, "n": 2, "model": "mine"},
    {"messages": ASK, **GREEDY, "logprobs": True, "top_logprobs": 3},
    {"messages": ASK, **GREEDY, "stop": ["the", "."]},
    {"messages": ASK, "temperature": 1, "seed": 7, "max_completion_tokens": 20, "top_p": 0.9},
    {"messages": ASK, "seed": 3, "max_tokens": 9, "logit_bias": {"40": -100}, "min_p": 0.1},
    {"messages": [{"role": "system", "content": "Ünï"}, *ASK], **GREEDY, "ignore_eos": True},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **GREEDY},
    {
        "messages": [*ASK, {"role": "assistant", "content": "Once"}],
        "continue_final_message": True,
        **GREEDY,
    },
    {"messages": ASK, "tools": TOOLS, **GREEDY},
    {"prompt": "Once upon a time", **GREEDY},
    {"prompt": ["Once upon", "A fox"], "temperature": 0, "n": 2},
    {"prompt": [40, 41, 42], **GREEDY, "logprobs": 2},
    {"prompt": "a", "seed": 5, "dry_multiplier": 0.8, "bad_words": ["the"], "max_tokens": 12},
]


@pytest.mark.parametrize("request_", REQUESTS, ids=range(len(REQUESTS)))
def test_answers_are_pythons_byte_for_byte(app, engine, request_):
    endpoint = engine.chat.completions if "messages" in request_ else engine.completions
    assert fixed(app.ask(**request_)) == fixed(endpoint.create(**request_).model_dump())


@pytest.mark.parametrize("request_", [REQUESTS[0], REQUESTS[3], REQUESTS[10]], ids=range(3))
def test_streams(app, engine, request_):
    """The same shapes, and joined the same text; how events fall together may differ."""
    asked = {**request_, "stream": True, "stream_options": {"include_usage": True}}
    endpoint = engine.chat.completions if "messages" in request_ else engine.completions
    wanted = [c.model_dump() for c in endpoint.create(**asked)]
    made = app.all(app.start(**asked))
    assert fixed(made[0]) == fixed(wanted[0]) or "prompt" in request_
    assert fixed(made[-1]) == fixed(wanted[-1])
    for chunks in (made, wanted):
        assert len({c["id"] for c in chunks}) == 1
    assert joined(made) == joined(wanted)
    assert [list(c) for c in made[-2:]] == [list(c) for c in wanted[-2:]]


def joined(chunks: list[Any]) -> tuple[str, str | None]:
    """The text of a stream, and why it ended."""
    choices = [c["choices"][0] for c in chunks if c["choices"]]
    texts = [c["text"] if "text" in c else c["delta"].get("content") or "" for c in choices]
    return "".join(texts), choices[-1]["finish_reason"]


def test_sixteen_at_once_answer_as_one_alone(app):
    requests = [
        {"messages": [{"role": "user", "content": f"Number {i}"}], "temperature": 0.7, "seed": i,
         "max_tokens": 16 + i}
        for i in range(16)
    ]  # fmt: skip
    alone = [app.ask(**request) for request in requests]
    started = [app.start(**request) for request in requests]
    together = [app.all(number)[-1] for number in started]
    assert [fixed(a) for a in together] == [fixed(a) for a in alone]


def test_abort_frees_pages(app):
    number = app.start(messages=ASK, stream=True, temperature=0, ignore_eos=True)
    app.chunks(number, 4)
    assert app.stats()["running"] == 1
    assert app.abort(number) == "ok "
    assert app.all(number)[-1]["error"]["code"] == "aborted"
    wait_until_idle(app)
    assert app.abort(number).startswith("error")


def wait_until_idle(app: App) -> None:
    for _ in range(200):
        stats = app.stats()
        if stats["requests"] == 0 and stats["pages_free"] == stats["pages_total"]:
            return
        time.sleep(0.02)
    raise AssertionError(stats)


def test_trim_forgets_prefixes(app):
    app.ask(messages=ASK, **GREEDY)
    assert app.stats()["pages_cached"] > 0
    assert app.command("trim") == "ok "
    assert app.stats()["pages_cached"] == 0


def test_the_prompt(app, engine):
    made = app.command("render " + json.dumps({"messages": ASK})).removeprefix("ok ")
    template = engine.loaded.planner.template
    assert made == template.render(ASK).split("\n")[0]


def test_a_closed_app_ends_its_requests(folder):
    app = App(folder)
    for _ in range(3):
        app.start(messages=ASK, temperature=0, ignore_eos=True, stream=True)
    app.close()


ERRORS: list[dict[str, Any]] = [
    {"messages": []},
    {"messages": ASK, "temperature": 3, "top_p": 0, "n": 0, "seed": "x", "stop": [1]},
    {"messages": [{"role": "nobody", "content": "x"}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
    {"messages": ASK, "max_tokens": 10**6},
    {"messages": ASK, "top_logprobs": 2},
    {"messages": ASK, "min_tokens": 9, "max_tokens": 3},
    {"messages": ASK, "logit_bias": {"99999999": 1}},
    {"messages": ASK, "functions": [{}], "audio": {}},
    {"messages": ASK, "continue_final_message": True},
    {"messages": ASK, "reasoning_effort": "huge"},
    {"prompt": []},
    {"prompt": [1, "a"]},
    {"prompt": {"a": 1}},
    {"prompt": [99999999]},
    {"prompt": "x", "max_tokens": 0},
    {"prompt": "x", "logprobs": 21, "priority": 0.5, "ignore_eos": "maybe"},
]


@pytest.mark.parametrize("request_", ERRORS, ids=range(len(ERRORS)))
def test_errors_are_pythons(app, engine, request_):
    endpoint = engine.chat.completions if "messages" in request_ else engine.completions
    with pytest.raises(UsageError) as e:
        endpoint.create(**request_)
    error = app.ask(**request_)["error"]
    assert error["message"] == str(e.value)
    assert error["type"] == "invalid_request_error"
    assert error["param"] == e.value.param
    assert error["code"] == e.value.code


def test_what_is_not_supported_is_named(app):
    for name, value in (
        ("tool_choice", {"type": "function", "function": {"name": "now"}}),
        ("response_format", {"type": "json_object"}),
        ("guided_regex", "a+"),
    ):
        error = app.ask(messages=ASK, tools=TOOLS, **{name: value})["error"]
        assert error["code"] == "unsupported_parameter"
        assert error["param"] == name
    assert app.ask(messages=ASK, response_format={"type": "text"}, **GREEDY)["choices"]


def test_what_is_no_json(app):
    app.say("x1 {")
    assert app.all("x1")[-1]["error"]["code"] == "invalid_json"


def test_a_folder_that_is_none(tmp_path):
    done = subprocess.run(
        [str(BUILD / "wherry_app_lines"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "wherry compile" in done.stderr
