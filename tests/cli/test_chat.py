"""A chat beyond one line: commands, several lines, conversations in files, keys at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import time

import pytest

from wherry.cli.conversation import Conversation
from wherry.cli.conversation_file import Saved, read, write
from wherry.compiler.api import ensure_artifact
from wherry.errors import UsageError

from ..support.command import started, wherry

GREEDY = ("--temperature", "0", "--max-tokens", "8")


@pytest.fixture(scope="module")
def demo():
    return str(ensure_artifact("demo"))


def said(demo, *lines, options=GREEDY):
    """Answers (stdout) and words (stderr) of a chat whose lines are piped."""
    done = wherry("chat", demo, *options, stdin="\n".join([*lines, ""]))
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.mark.cpu
class TestCommands:
    def test_regen_and_undo(self, demo):
        lines = ("What is 2 plus 3?", "/regen", "/undo", "/undo", "/regen")
        answers, words = said(demo, *lines)
        assert len(answers) == 2 and answers[0] == answers[1]  # temperature 0
        assert "[the temperature is 0: the answer will be the same]" in words
        assert "Taken back; the conversation has 0 messages." in words
        assert "There is no message to take back." in words
        assert "There is no message yet to answer again." in words

    def test_regen_with_a_seed_takes_the_next_one(self, demo):
        options = ("--seed", "1", "--temperature", "2", "--max-tokens", "12")
        answers, words = said(demo, "Tell me a story.", "/regen", "/params", options=options)
        assert len(answers) == 2 and answers[0] != answers[1]
        assert "seed=2" in words

    def test_params(self, demo):
        lines = ("/params max_tokens=1 top_k=", "Hello", "/params top_p=7", "/params colour=red")
        answers, words = said(demo, *lines, "/params messages=x", "/params x", options=())
        assert len(answers) == 1 and len(answers[0].split()) <= 1
        assert "max_tokens=1" in words and "top_p" in words and "colour" in words
        assert "messages: the chat sets that itself" in words and "'x' is not NAME=VALUE" in words

    def test_several_lines_are_one_message_and_two_slashes_one(self, demo, tmp_path):
        file = tmp_path / "talk.json"
        said(demo, '"""Hello', "", 'you"""', "//help", "/walk", f"/save {file}")
        messages = [m["content"] for m in read(file).turns if m["role"] == "user"]
        assert messages == ["Hello\n\nyou", "/help"]

    def test_an_unknown_command_is_no_message(self, demo):
        answers, words = said(demo, "/walk home")
        assert answers == [] and "There is no /walk; //walk home sends it" in words

    def test_a_chat_is_kept_and_goes_on(self, demo, tmp_path):
        file = tmp_path / "talk.json"
        options = (*GREEDY, "--save", str(file))
        said(demo, "Hello.", options=(*options, "--system", "Be brief."))
        first = read(file)
        assert first.system == "Be brief." and len(first.turns) == 2 and first.model == "demo"
        assert first.fields == {"temperature": 0.0, "max_tokens": 8}
        _, words = said(demo, "What is 2 plus 3?", options=options)
        assert f"[2 messages of {file}]" in words
        assert read(file).turns[:2] == first.turns and len(read(file).turns) == 4
        _, words = said(demo, f"/load {file}", "/load none.json", "/load", f"/save {tmp_path}/x/y")
        assert "[4 messages of" in words and "none.json is not a conversation" in words
        assert "Which file? Type: /load chat.json" in words and "cannot be written" in words

    def test_a_file_that_is_no_conversation_ends_it_before_the_load(self, tmp_path):
        file = tmp_path / "talk.json"
        file.write_text("[]")
        done = wherry("chat", "demo", "--save", str(file))
        assert done.returncode == 2 and "is not a conversation" in done.stderr
        assert file.read_text() == "[]"


TURNS = [{"role": "user", "content": "Grüße\n"}, {"role": "assistant", "content": "☺"}]


class TestFile:
    @pytest.mark.parametrize("system", [None, "Be brief."])
    def test_what_is_written_is_read(self, tmp_path, system):
        saved = Saved("demo", system, TURNS, {"top_k": 3})
        write(tmp_path / "a.json", saved)
        assert read(tmp_path / "a.json") == saved

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"wherry_conversation": 2}, "wherry_conversation is 2"),
            ({"messages": None}, "messages is not an array"),
            ({"messages": TURNS[:1]}, "the last message is not the model's"),
            ({"messages": TURNS[1:]}, "message 0 is of 'assistant', out of turn"),
            ({"messages": [{"role": "user"}]}, "message 0 is not"),
            ({"fields": 3}, "fields is not an object"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, change, why):
        path = tmp_path / "a.json"
        write(path, Saved("demo", None, TURNS, {}))
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(UsageError, match=re.escape(why)):
            read(path)


class Terminal:
    """A chat at a terminal of its own."""

    def __init__(self, *arguments, **env):
        controller, terminal = pty.openpty()
        self.process = started(
            *arguments, stdin=terminal, stdout=terminal, stderr=terminal, TERM="xterm", **env
        )
        os.close(terminal)
        self.controller = controller
        self.seen = ""

    def expect(self, text, seconds=120):
        """Wait until `text` is shown, and forget all up to it; what came before it."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-500:]!r}"
            if select.select([self.controller], [], [], 1)[0]:
                with contextlib.suppress(OSError):
                    data = os.read(self.controller, 65536)
                    if b"\x1b[6n" in data:  # where the cursor is, terminals are asked
                        os.write(self.controller, b"\x1b[1;1R")
                    self.seen += _plain(data)
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.controller, text.encode())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.controller)


READY = "<ready>"  # keys are read from now on; before, the terminal's own line discipline has them


def _plain(data):
    """Without what moves the cursor and sets colours."""
    text = data.decode().replace("\x1b[?2004h", READY)  # asked for as a prompt is first drawn
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>()][0-9A-Z]?|\r", "", text)


@pytest.mark.cpu
def test_keys_at_a_terminal(demo, tmp_path):
    file = tmp_path / "talk.json"
    state = {"XDG_STATE_HOME": str(tmp_path)}
    terminal = Terminal("chat", demo, *GREEDY, "--save", str(file), **state)
    try:
        terminal.expect(READY)
        terminal.type("lost\x03")  # Ctrl-C clears the line
        terminal.expect(READY)
        terminal.type("/sta")
        terminal.expect("/sta")
        terminal.type("\t")  # Tab completes a command
        terminal.expect("ts")
        terminal.type("\r")
        terminal.expect("tokens read")
        terminal.expect(READY)
        terminal.type("Hello\x1b\rthere\r")  # Alt-Enter begins a line, Enter sends
        terminal.expect(READY)
        assert len(read(file).turns) == 2
        terminal.type("\x1b[A\r")  # the arrow brings the last message back
        terminal.expect(READY)
        assert len(read(file).turns) == 4
        terminal.type("\x04")  # Ctrl-D leaves
        assert terminal.process.wait(timeout=60) == 0
    finally:
        terminal.close()
    assert [m["content"] for m in read(file).turns[::2]] == ["Hello\nthere"] * 2
    history = tmp_path / "wherry" / "chat-history"
    assert "+Hello\n+there\n" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0  # readable only by its owner


def test_withdrawn_messages_are_gone():
    conversation = Conversation("s", [{"role": "user", "content": "a"}])
    conversation.answered("b")
    conversation.ask("c")
    assert [m["content"] for m in conversation.messages] == ["s", "a", "b", "c"]
    assert conversation.withdraw() == "c"
    assert conversation.withdraw() == "a" and not conversation.turns
    assert conversation.withdraw() is None
