"""LiteLLM against the server at argv[1], which it takes for OpenAI's and for Ollama's."""

from __future__ import annotations

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a table otherwise
import litellm

litellm.suppress_debug_info = True  # it would print its list of providers

URL = sys.argv[1]
HI = [{"role": "user", "content": "weather?"}]
CITIES = [{"city": "Köln"}, {"city": "Rome"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
MODELS = {"openai/small": f"{URL}/v1", "ollama_chat/small": URL, "ollama/small": URL}


def check_calls(message):
    assert [call.function.name for call in message.tool_calls] == ["weather"] * 2, message
    arguments = [json.loads(call.function.arguments) for call in message.tool_calls]
    assert arguments == CITIES, message


def check(model, base):
    fields = {"model": model, "api_base": base, "api_key": "x", "num_retries": 0, "max_tokens": 500}
    plain = litellm.completion(messages=HI, **fields).choices[0]
    text = plain.message.content
    assert "Let me see." in text, plain
    chunks = list(litellm.completion(messages=HI, stream=True, **fields))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert streamed == text, (streamed, text)
    if model.startswith("ollama/"):  # it puts tools into the prompt, and asks for JSON
        return
    called = litellm.completion(messages=HI, tools=[TOOL], **fields).choices[0]
    assert called.finish_reason == "tool_calls", called
    check_calls(called.message)
    chunks = list(litellm.completion(messages=HI, tools=[TOOL], stream=True, **fields))
    if model.startswith("openai/"):
        check_calls(litellm.stream_chunk_builder(chunks, messages=HI).choices[0].message)
    else:  # its builder joins the calls of one answer, which Ollama does not number
        calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        assert [json.loads(call.function.arguments) for call in calls] == CITIES, chunks
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        for call in called.message.tool_calls
    ]
    turns = [*HI, called.message.model_dump(exclude_none=True), *results]
    answer = litellm.completion(messages=turns, tools=[TOOL], **fields)
    assert answer.choices[0].message.content == "sunny", answer


for model, base in MODELS.items():
    check(model, base)
print("all is well")
