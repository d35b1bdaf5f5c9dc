"""Ollama's client for Python."""

import json
import os

import ollama

client = ollama.Client(
    host=os.environ["SERVER_URL"], headers={"Authorization": "Bearer " + os.environ["SERVER_KEY"]}
)
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
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
    "model": "demo",
    "messages": [{"role": "user", "content": "How many legs has a spider?"}],
    "options": {"temperature": 0, "num_predict": 32},
}
seen = {}
seen["chat"] = client.chat(**greedy).message.content
chunks = list(client.chat(**greedy, stream=True))
seen["streamed"] = "".join(c.message.content or "" for c in chunks)
seen["done"] = [chunks[-1].done, chunks[-1].done_reason, chunks[-1].eval_count > 0]
seen["structured"] = json.loads(
    client.chat(**greedy | {"options": {"temperature": 0}}, format=SCHEMA).message.content
)
seen["generate"] = client.generate(
    model="demo",
    prompt="How many legs has a spider?",
    options={"temperature": 0, "num_predict": 32},
).response
seen["with_tools"] = client.chat(**greedy, tools=[TOOL]).message.role
seen["embeddings"] = [
    len(e) for e in client.embed(model="demo", input=["a fox", "a spider"]).embeddings
]
seen["models"] = [m.model for m in client.list().models]
seen["running"] = [m.model for m in client.ps().models]
seen["shown"] = client.show("demo").details.quantization_level
errors = {}
try:
    client.chat(**greedy | {"model": "nobody"})
except ollama.ResponseError as e:
    errors["unknown_model"] = [e.status_code, bool(e.error)]
seen["errors"] = errors
print(json.dumps(seen))
