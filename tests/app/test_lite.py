"""`wherry-lite run` and `chat`, and how wrong arguments are refused."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact
from wherry.runtime import MLCEngine

from ..support.endless import endless_demo
from ..support.waiting import until
from .lite import PROGRAM, cache, command, lite

pytestmark = pytest.mark.cpu
QUESTION = "Tell me a story about a fox."
GREEDY = ("--temperature", 0, "--max-tokens", 24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with cache(tmp_path_factory.mktemp("cache")):
        yield Path(ensure_artifact("demo", target="cpu"))


@pytest.fixture(scope="module")
def endless(folder, tmp_path_factory):
    return endless_demo(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def engine(folder):
    with MLCEngine(folder) as opened:
        yield opened


def said(engine, *messages, **fields) -> str:
    """Python's answer, as a terminal shows it."""
    turns = [{"role": role, "content": content} for role, content in messages]
    answer = engine.chat.completions.create(messages=turns, temperature=0, max_tokens=24, **fields)
    text = answer.choices[0].message.content
    return text if text.endswith("\n") else text + "\n"


def test_run_answers_as_python_does(folder, engine):
    done = lite("run", folder, QUESTION, *GREEDY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == said(engine, ("user", QUESTION))
    piped = lite("run", folder, *GREEDY, "--system", "Be brief.", stdin=QUESTION)
    assert piped.stdout == said(engine, ("system", "Be brief."), ("user", QUESTION))


def test_run_continues_a_text(folder, engine):
    for length in (16, 24):
        options = ("--max-tokens", 24) if length == 24 else ()
        done = lite("run", folder, "--completion", "--temperature", 0, *options, "--", "Once upon")
        text = engine.completions.create(prompt="Once upon", temperature=0, max_tokens=length)
        assert done.returncode == 0 and done.stdout.endswith("\n")
        assert done.stdout.rstrip("\n") == text.choices[0].text.rstrip("\n")


def test_a_model_without_a_template_completes(folder, engine, tmp_path):
    plain = Path(shutil.copytree(folder, tmp_path / "plain"))
    manifest = json.loads((plain / "wherry.json").read_text())
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        (plain / name).unlink(missing_ok=True)
        manifest["files"].pop(name, None)
    (plain / "wherry.json").write_text(json.dumps(manifest))
    done = lite("run", plain, "Once upon", *GREEDY)
    text = engine.completions.create(prompt="Once upon", temperature=0, max_tokens=24)
    assert done.stdout.rstrip("\n") == text.choices[0].text.rstrip("\n"), done.stderr
    done = lite("chat", plain)
    assert done.returncode == 1 and "wherry-lite run" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("talk",), 'no command "talk"'),
        (("run",), "which model?"),
        (("run", "x", "y", "z"), '"z" is one word too many'),
        (("chat", "x", "--port", "1"), "`wherry-lite chat` has no option --port"),
        (("run", "x", "y", "--colour", "red"), "there is no option --colour"),
        (("run", "x", "y", "--seed"), "--seed needs a value"),
        (("run", "x", "y", "--seed=1.5"), '--seed is "1.5"; it takes a whole number'),
        (("run", "x", "y", "--temperature", "hot"), 'is "hot"; it takes a number'),
        (("run", "x", "y", "--threads", "0"), "from 1 to"),
    ],
)
def test_wrong_words_are_named(words, said):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr and done.stdout == ""


def test_help():
    for words in ((), ("--help",), ("chat", "--help"), ("run", "-h"), ("serve", "x", "--help")):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout.startswith("usage: wherry-lite")
        assert max(map(len, done.stdout.splitlines())) <= 96


def test_what_a_request_may_not_be(folder, tmp_path):
    done = lite("run", folder, QUESTION, "--temperature", 9)
    assert done.returncode == 1 and "temperature: takes a number of at most 2" in done.stderr
    assert done.stdout == ""
    done = lite("run", tmp_path, QUESTION)
    assert done.returncode == 1 and "wherry compile" in done.stderr


def test_a_chat_of_lines(folder, engine):
    """Piped in: what was said is sent with the next message; commands change it."""
    lines = ['"""Tell me', "", ' a story."""', "And then?", "/regen", "/undo", "/reset", "//hi"]
    done = lite("chat", folder, *GREEDY, stdin="\n".join(lines) + "\n/nothing\n/exit\nnever")
    first = said(engine, ("user", "Tell me\n\n a story."))
    turns = [("user", "Tell me\n\n a story."), ("assistant", first.rstrip("\n"))]
    raw = engine.chat.completions.create(
        messages=[{"role": "user", "content": turns[0][1]}], temperature=0, max_tokens=24
    )
    turns[1] = ("assistant", raw.choices[0].message.content)
    second = said(engine, *turns, ("user", "And then?"))
    assert done.returncode == 0
    assert done.stdout == first + second + second + said(engine, ("user", "/hi"))
    assert "has 2 messages" in done.stderr and "There is no /nothing" in done.stderr


def test_a_chat_forgets_its_oldest_turns_and_says_so(folder):
    lines = [f"Tell me number {i} of the long stories about a fox." for i in range(6)]
    done = lite("chat", folder, *GREEDY, "--context", 128, stdin="\n".join(lines))
    assert done.returncode == 0 and len(done.stdout.splitlines()) >= 6
    assert "[the context of 128 tokens is full: the oldest 2 messages are forgotten]" in done.stderr
    done = lite("chat", folder, "--context", 128, stdin="many words " * 200 + "\nHi\n")
    assert (
        "Not sent: This model's maximum context length is 128 tokens" in done.stderr and done.stdout
    )


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self._controller, terminal = pty.openpty()
        self.process = subprocess.Popen(
            words,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(terminal)
        self.text = ""

    def type(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def until(self, words: str, times: int = 1) -> str:
        """All that it has shown, when `words` are in it so often."""
        while self.text.count(words) < times:
            self.read()
        return self.text

    def read(self) -> None:
        """What it shows next."""
        assert select.select([self._controller], [], [], 60)[0], self.text
        try:
            self.text += os.read(self._controller, 65536).decode(errors="replace")
        except OSError as e:  # the other end is closed
            raise AssertionError(self.text) from e

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self) -> int:
        code = self.process.wait(60)
        os.close(self._controller)
        return code


def test_at_a_terminal_ctrl_c_ends_the_answer_and_then_the_program(folder):
    terminal = Terminal(*command("chat", folder, "--temperature", "0"))
    terminal.until("> ")
    terminal.type("Hello!\n")
    shown = terminal.until("\n> ", 2)
    assert "Type a message; /help for commands" in shown
    terminal.type("/help\n")
    terminal.until("//X       the message /X")
    terminal.until("\n> ", 3)
    terminal.interrupt()  # at the prompt
    assert terminal.close() == -signal.SIGINT


def answering(endless) -> Terminal:
    """A chat in the middle of an answer."""
    terminal = Terminal(*command("chat", endless, "--temperature", "0"))
    terminal.until("> ")
    terminal.type("Tell me a story\n")
    terminal.until("> Tell me a story\r\n")
    before = len(terminal.text)
    while len(terminal.text) < before + 8:
        terminal.read()
    return terminal


def test_at_a_terminal_an_answer_stops_and_the_chat_goes_on(endless):
    terminal = answering(endless)
    terminal.interrupt()
    terminal.until("[stopped]")
    terminal.until("\n> ")
    terminal.type("/undo\n")
    terminal.until("the conversation has 0 messages")
    terminal.type("\x04")
    assert terminal.close() == 0


def test_at_a_terminal_a_second_ctrl_c_ends_the_program(endless):
    terminal = answering(endless)

    def ended() -> bool:  # of two signals at once the program sees one
        terminal.interrupt()
        return terminal.process.poll() is not None

    until(ended)
    # The last may have found the prompt already.
    assert terminal.close() in (130, -signal.SIGINT)
