"""LiteLLM, as its users call any OpenAI-compatible server."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch a table otherwise
import litellm

server = {"api_base": os.environ["SERVER_URL"] + "/v1", "api_key": os.environ["SERVER_KEY"]}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
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
greedy = {
    "model": "openai/demo",
    "messages": [{"role": "user", "content": "How many legs has a spider?"}],
    "temperature": 0,
    "max_tokens": 32,
    "num_retries": 0,
    **server,
}
seen = {}
seen["chat"] = litellm.completion(**greedy).choices[0].message.content
seen["streamed"] = "".join(
    c.choices[0].delta.content or "" for c in litellm.completion(**greedy, stream=True)
)
called = litellm.completion(**greedy | {"max_tokens": 128}, tools=[TOOL], tool_choice="required")
call = called.choices[0].message.tool_calls[0]
seen["tool"] = [call.function.name, json.loads(call.function.arguments)]
structured = litellm.completion(
    **greedy | {"max_tokens": 256},
    response_format={
        "type": "json_schema",
        "json_schema": {"name": "legs", "schema": SCHEMA, "strict": True},
    },
)
seen["structured"] = json.loads(structured.choices[0].message.content)
embedded = litellm.embedding(
    model="openai/demo", input=["a fox", "a spider"], encoding_format="float", **server
)
seen["embeddings"] = [len(e["embedding"]) for e in embedded.data]
try:
    litellm.completion(**greedy | {"model": "openai/nobody"})
except litellm.exceptions.APIError as e:
    seen["errors"] = {"unknown_model": [type(e).__name__, e.status_code]}
except litellm.NotFoundError as e:
    seen["errors"] = {"unknown_model": [type(e).__name__, e.status_code]}
print(json.dumps(seen))
