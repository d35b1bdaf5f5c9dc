"""Anthropic's own client, and LangChain's over it, against the server at argv[1]."""

from __future__ import annotations

import sys

import anthropic
from langchain_anthropic import ChatAnthropic

MODEL, TOKENS = "small", 2000
HI = [{"role": "user", "content": "weather?"}]
CITIES = [{"city": "Köln"}, {"city": "Rome"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "weather", "description": "d", "input_schema": SCHEMA}
THINKING = {"type": "enabled", "budget_tokens": 1024}
client = anthropic.Anthropic(base_url=sys.argv[1], api_key="x", max_retries=0)


def check_message(message):
    assert [b.type for b in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert [b.input for b in message.content[2:]] == CITIES
    assert message.stop_reason == "tool_use"


options = {"model": MODEL, "max_tokens": TOKENS, "tools": [TOOL], "thinking": THINKING}
message = client.messages.create(messages=HI, **options)
check_message(message)
assert message._request_id

with client.messages.stream(messages=HI, **options) as stream:
    kinds = {event.type for event in stream}
    check_message(stream.get_final_message())
assert kinds >= {"text", "thinking", "signature", "input_json", "message_stop"}, kinds

results = [
    {"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
    for block in message.content
    if block.type == "tool_use"
]
turns = [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
answer = client.messages.create(messages=[*HI, *turns], **options)
assert answer.content[0].text == "sunny"

stopped = client.messages.create(
    model=MODEL, max_tokens=TOKENS, messages=HI, stop_sequences=["see"]
)
assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "see")
counted = client.messages.count_tokens(model=MODEL, messages=HI).input_tokens
assert counted == stopped.usage.input_tokens
assert [m.id for m in client.models.list()] == [MODEL]
assert client.models.retrieve(MODEL).type == "model"

for kind, fields in (
    (anthropic.NotFoundError, {"model": "other"}),
    (anthropic.BadRequestError, {"max_tokens": 0}),
    (anthropic.BadRequestError, {"messages": [{"role": "user", "content": "a" * 100_000}]}),
):
    try:
        client.messages.create(**{"model": MODEL, "max_tokens": 9, "messages": HI, **fields})
    except kind as e:
        assert e.body["type"] == "error" and e.request_id == e.body["request_id"]
    else:
        raise AssertionError(fields)

chat = ChatAnthropic(model=MODEL, base_url=sys.argv[1], api_key="x", max_tokens=TOKENS)
called = chat.bind_tools([TOOL]).invoke("weather?")
assert [c["args"] for c in called.tool_calls] == CITIES
assert len(list(chat.stream("weather?"))) > 2
print("all is well")
