"""Conversations of agents over the chat templates that llama.cpp's sources contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wherry.runtime.text.chat_template import ChatTemplate

from ...support import llama_cpp
from ...support.chats import chats
from .test_history import assistant, call, in_order, result, system, tool, user

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),  # of what Jinja compiles to
]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}


def calling(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return assistant(text, tool_calls=list(calls))


def described_tool(name: str) -> dict[str, Any]:
    described = tool(name)
    described["function"]["parameters"]["properties"]["x"]["description"] = "a text"
    return described


def one(number: int, name: str, text: str) -> dict[str, Any]:
    return call(number, name, f'{{"x": "{text}"}}')


# Conversations, and the texts that the prompt has to contain, in groups; each group is in order.
# A template may put all systems at the beginning, as DeepSeek's does.
CHATS: dict[str, tuple[list[dict[str, Any]], list[list[str]]]] = {
    "plain": (
        [system("needles"), user("needleu"), assistant("needlea"), user("needlev")],
        [["needles"], ["needleu", "needlea", "needlev"]],
    ),
    "two systems": (
        [system("needles"), system("needlet"), user("needleu")],
        [["needles", "needlet"], ["needleu"]],
    ),
    "a late system": (
        [
            system("needles"),
            user("needleu"),
            assistant("needlea"),
            system("needlet"),
            user("needlev"),
        ],
        [["needles"], ["needlet"], ["needleu", "needlea", "needlev"]],
    ),
    "a last system": (
        [system("needles"), user("needleu"), system("needlet")],
        [["needles"], ["needlet"], ["needleu"]],
    ),
    "two users": (
        [system("needles"), user("needleu"), user("needlev")],
        [["needles"], ["needleu", "needlev"]],
    ),
    "an agent": (
        [
            system("needles"),
            system("needlet"),
            user("needleu"),
            user("needlev"),
            assistant("needlea"),
            system("needlew"),
            user("needlex"),
        ],
        [["needles", "needlet"], ["needlew"], ["needleu", "needlev", "needlea", "needlex"]],
    ),
    "two answers": (
        [user("needleu"), assistant("needlea"), assistant("needleb"), user("needlev")],
        [["needleu", "needlea", "needleb", "needlev"]],
    ),
    "an empty answer": (
        [user("needleu"), assistant(""), user("needlev")],
        [["needleu", "needlev"]],
    ),
    "an answer first": ([assistant("needlea"), user("needleu")], [["needlea", "needleu"]]),
    "a call": (
        [
            user("needleu"),
            calling("", one(1, "f", "needlex")),
            result(1, "needler"),
            assistant("needlea"),
            user("needlev"),
        ],
        [["needleu", "needlex", "needler", "needlea", "needlev"]],
    ),
    "a call with words": (
        [user("needleu"), calling("needlew", one(1, "f", "needlex")), result(1, "needler")],
        [["needleu", "needlex", "needler"], ["needlew"]],
    ),
    "a user after a result": (
        [
            user("needleu"),
            calling("", one(1, "f", "needlex")),
            result(1, "needler"),
            user("needlev"),
        ],
        [["needleu", "needlex", "needler", "needlev"]],
    ),
    "parallel calls": (
        [
            user("needleu"),
            calling("", one(1, "f", "needlex"), one(2, "g", "needley")),
            result(1, "needler"),
            result(2, "needleq"),
        ],
        [["needleu", "needlex", "needler"], ["needlex", "needley", "needleq"]],
    ),
    "rounds": (
        [
            user("needleu"),
            calling("", one(1, "f", "needlex")),
            result(1, "needler"),
            calling("", one(2, "g", "needley")),
            result(2, "needleq"),
        ],
        [["needleu", "needlex", "needler", "needley", "needleq"]],
    ),
    "a cut call": (
        [user("needleu"), calling("", call(1, "f", '{"x": "needlex')), result(1, "needler")],
        [["needleu", "needlex", "needler"]],
    ),
    "a list for arguments": (
        [user("needleu"), calling("", call(1, "f", '["needlex"]')), result(1, "needler")],
        [["needleu", "needler"]],
    ),
}


@pytest.fixture(scope="module")
def templates(tmp_path_factory) -> dict[str, Path]:
    folder = llama_cpp.sources(tmp_path_factory.mktemp("llama")) / "models" / "templates"
    sources = {path.stem: path for path in sorted(folder.glob("*.jinja"))}
    assert len(sources) > 60
    return sources


def problems(name: str, path: Path) -> list[str]:
    lines = []
    with chats(ChatTemplate(path.read_text("utf-8"), SPECIAL)) as prompted:
        for chat, (messages, groups) in CHATS.items():
            calls = any("tool_calls" in message for message in messages)
            tools = {"tools": [described_tool("f"), described_tool("g")]}
            fields = {"messages": messages, **(tools if calls or "tool_use" in name else {})}
            try:
                text, changes = prompted(fields)
            except Exception as e:
                lines.append(f"{name}: {chat}: {e}")
                continue
            for group in groups:
                left_out = group == ["needlew"] and "text-with-calls-left-out" in changes
                if not in_order(text, *group) and not left_out:
                    lines.append(f"{name}: {chat}: {group} {changes}")
    return lines


def test_nothing_is_refused_or_lost_without_a_word(templates):
    wrong = [problem for name, path in templates.items() for problem in problems(name, path)]
    assert not wrong, "\n".join(wrong)
