"""Requests of other protocols that are almost right, as test_fuzz_requests.py makes OpenAI's.

Whatever comes in, the answer is below 500 and of the protocol's shape, and nothing stays behind.
"""

from __future__ import annotations

import pytest

from wherry.runtime.server.endpoints.responses.summary import sealed

from .almost_right import fuzz
from .sse import events

MESSAGES = {
    "model": "small",
    "max_tokens": 8,
    "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "the cat"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "is_error": True,
                    "content": [{"type": "text", "text": "sat"}],
                }
            ],
        },
    ],
    "stop_sequences": ["END"],
    "stream": True,
    "metadata": {"user_id": "me"},
    "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"},
    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
    "output_config": {"effort": "low"},
}
RESPONSES = {
    "model": "small",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "the cat"}]},
        {"type": "reasoning", "id": "r", "summary": [], "content": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "sat"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ],
    "instructions": "a",
    "max_output_tokens": 8,
    "stream": True,
    "store": True,
    "metadata": {"a": "b"},
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 1,
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function"}]},
    "conversation": {"id": "conv_1"},
}
# What is not spoilt of these is answered: there are no tools to choose from.
ANSWERED = {k: v for k, v in RESPONSES.items() if k not in ("conversation", "tool_choice")}
CONVERSATION = {"metadata": {"a": "b"}, "items": RESPONSES["input"]}
SUMMARY = {"type": "compaction", "encrypted_content": sealed("the cat sat")}
COMPACT = {"model": "small", "input": [SUMMARY, *RESPONSES["input"]], "instructions": "a"}
TOKENIZE = {
    "model": "small",
    "messages": [{"role": "user", "content": "the cat"}],
    "add_generation_prompt": True,
    "add_special_tokens": False,
    "return_token_strs": True,
    "chat_template_kwargs": {"a": 1},
}
BODIES = {
    "/v1/messages": MESSAGES,
    "/v1/messages/count_tokens": MESSAGES,
    "/v1/responses": ANSWERED,
    "/v1/responses/input_tokens": RESPONSES,
    "/v1/responses/compact": COMPACT,
    "/v1/conversations": CONVERSATION,
    "/tokenize": TOKENIZE,
    "/detokenize": {"model": "small", "tokens": [5, 6, 7, 600]},
}
ERRORS = {"message", "type", "param", "code"}


def check(path, answer):
    assert answer.status_code < 500, answer.text
    kind = answer.headers["content-type"]
    if kind.startswith("text/event-stream"):
        ends = ("message_stop", "response.completed", "response.incomplete")
        assert events(answer.text)[-1][0] in ends
        return
    assert kind.startswith("application/json")
    if answer.status_code != 200:
        error = answer.json()["error"]
        assert set(error) == ({"type", "message"} if path.startswith("/v1/messages") else ERRORS)
        assert len(error["message"]) < 10_000


def test_bodies(make):
    fuzz(make, BODIES, check, range(400))


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(1_000_000, 1_020_000, 5000))
def test_many_bodies(make, start):
    fuzz(make, BODIES, check, range(start, start + 5000))
