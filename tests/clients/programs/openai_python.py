"""OpenAI's client for Python."""

import json
import os

import openai

client = openai.OpenAI(
    base_url=os.environ["SERVER_URL"] + "/v1", api_key=os.environ["SERVER_KEY"], max_retries=0
)
MODEL = "demo"
MESSAGES = [{"role": "user", "content": "How many legs has a spider?"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 10}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"legs": {"type": "integer", "minimum": 0, "maximum": 8}},
    "required": ["legs"],
    "additionalProperties": False,
}
greedy = {"model": MODEL, "messages": MESSAGES, "temperature": 0, "max_tokens": 32}
seen = {}

answer = client.chat.completions.create(**greedy)
seen["chat"] = answer.choices[0].message.content
seen["usage"] = answer.usage.total_tokens
chunks = list(
    client.chat.completions.create(**greedy, stream=True, stream_options={"include_usage": True})
)
seen["streamed"] = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
seen["streamed_usage"] = chunks[-1].usage.total_tokens

called = client.chat.completions.create(
    **greedy | {"max_tokens": 128}, tools=[TOOL], tool_choice="required"
)
call = called.choices[0].message.tool_calls[0]
seen["tool"] = [call.function.name, json.loads(call.function.arguments)]
seen["tool_finish"] = called.choices[0].finish_reason
arguments, name = "", None
for chunk in client.chat.completions.create(
    **greedy | {"max_tokens": 128}, tools=[TOOL], tool_choice="required", stream=True
):
    for piece in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
        name = piece.function.name or name
        arguments += piece.function.arguments or ""
seen["streamed_tool"] = [name, json.loads(arguments)]
# The model reads what the tool has said.
history = [
    *MESSAGES,
    called.choices[0].message.model_dump(exclude_none=True),
    {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
]
after = client.chat.completions.create(**greedy | {"messages": history}, tools=[TOOL])
seen["after_tool"] = after.choices[0].finish_reason

structured = client.chat.completions.create(
    **greedy | {"max_tokens": 256},
    response_format={
        "type": "json_schema",
        "json_schema": {"name": "legs", "schema": SCHEMA, "strict": True},
    },
)
seen["structured"] = json.loads(structured.choices[0].message.content)

embedded = client.embeddings.create(model=MODEL, input=["a fox", "a spider"])
seen["embeddings"] = [len(e.embedding) for e in embedded.data]

responded = client.responses.create(
    model=MODEL, input="How many legs has a spider?", temperature=0, max_output_tokens=32
)
seen["response"] = responded.output_text
events = list(
    client.responses.create(
        model=MODEL,
        input="How many legs has a spider?",
        temperature=0,
        max_output_tokens=32,
        stream=True,
    )
)
seen["response_streamed"] = "".join(
    e.delta for e in events if e.type == "response.output_text.delta"
)

errors = {}
for what, fields in {
    "unknown_model": {"model": "nobody"},
    "context": {"messages": [{"role": "user", "content": "spider " * 20000}]},
    "temperature": {"temperature": -1},
}.items():
    try:
        client.chat.completions.create(**greedy | fields)
    except openai.APIStatusError as e:
        errors[what] = [type(e).__name__, e.status_code, e.code]
try:
    client.with_options(api_key="wrong").models.list()
except openai.AuthenticationError as e:
    errors["key"] = [type(e).__name__, e.status_code, e.code]
seen["errors"] = errors
seen["models"] = [m.id for m in client.models.list()]
print(json.dumps(seen))
