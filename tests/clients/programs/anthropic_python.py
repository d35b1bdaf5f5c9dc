"""Anthropic's client for Python."""

import json
import os

import anthropic

client = anthropic.Anthropic(
    base_url=os.environ["SERVER_URL"], api_key=os.environ["SERVER_KEY"], max_retries=0
)
TOOL = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 10}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
greedy = {
    "model": "demo",
    "max_tokens": 32,
    "messages": [{"role": "user", "content": "How many legs has a spider?"}],
    "extra_body": {"temperature": 0},
}
seen = {}

answer = client.messages.create(**greedy)
seen["chat"] = "".join(b.text for b in answer.content if b.type == "text")
seen["stop"] = answer.stop_reason
with client.messages.stream(**greedy) as stream:
    seen["streamed"] = "".join(stream.text_stream)
    seen["streamed_usage"] = stream.get_final_message().usage.output_tokens
seen["usage"] = answer.usage.output_tokens
seen["counted"] = client.messages.count_tokens(
    model="demo", messages=greedy["messages"]
).input_tokens
seen["input"] = answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0)

with client.messages.stream(
    **greedy | {"max_tokens": 128}, tools=[TOOL], tool_choice={"type": "any"}
) as stream:
    called = stream.get_final_message()
use = next(b for b in called.content if b.type == "tool_use")
seen["tool"] = [use.name, use.input]
seen["tool_finish"] = called.stop_reason
after = client.messages.create(
    **greedy
    | {
        "messages": [
            *greedy["messages"],
            {"role": "assistant", "content": [b.model_dump() for b in called.content]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}],
            },
        ]
    },
    tools=[TOOL],
)
seen["after_tool"] = after.stop_reason
errors = {}
for what, fields in {
    "unknown_model": {"model": "nobody"},
    "temperature": {"extra_body": {"temperature": -1}},
}.items():
    try:
        client.messages.create(**greedy | fields)
    except anthropic.APIStatusError as e:
        errors[what] = [type(e).__name__, e.status_code, e.body["error"]["type"]]
seen["errors"] = errors
print(json.dumps(seen))
