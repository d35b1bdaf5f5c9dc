"""Examples of the page of the Python API, by method.

tests/runtime/test_python_examples.py runs them. An example finds `engine`, an MLCEngine of the demo
model, or of the asynchronous methods an AsyncMLCEngine.
"""

from __future__ import annotations

EXAMPLES = {
    "MLCEngine": """
from wherry import MLCEngine

with MLCEngine("demo", context=512) as engine:
    print(engine)
""",
    "MLCEngine.of": """
from wherry.runtime.load.model import LoadedModel

engine = MLCEngine.of(LoadedModel.load("demo"))
engine.close()
""",
    "MLCEngine.stats": """
stats = engine.stats()
print(f"{stats.decode_tokens} tokens written, {stats.pages_free} of {stats.pages_total} pages free")
""",
    "MLCEngine.generate": """
from wherry.runtime.core.interface import SamplingParams

ids = engine.loaded.tokenizer.encode("Once upon a time")
for event in engine.generate(ids, SamplingParams(max_tokens=8, temperature=0.0)):
    print(event.token, event.logprob)
""",
    "MLCEngine.close": """
engine = MLCEngine("demo")
try:
    print(engine.stats().pages_total)
finally:
    engine.close()
""",
    "ChatCompletions.create": """
answer = engine.chat.completions.create(
    messages=[{"role": "user", "content": "Tell me a story about a fox."}],
    temperature=0.7,
    max_tokens=64,
)
print(answer.choices[0].message.content)

stream = engine.chat.completions.create(
    messages=[{"role": "user", "content": "What is 2 plus 3?"}], max_tokens=64, stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")
""",
    "Completions.create": """
answer = engine.completions.create(prompt="Once upon a time", max_tokens=16, stop=["."])
print(answer.choices[0].text, answer.choices[0].finish_reason)
""",
    "Embeddings.create": """
with MLCEngine("hf://sentence-transformers/all-MiniLM-L6-v2") as encoder:
    answer = encoder.embeddings.create(input=["A fox.", "An owl."])
    print(len(answer.data[0].embedding))
""",
    "Stream.close": """
with engine.completions.create(prompt="Once upon a time", stream=True) as stream:
    print(next(stream).choices[0].text)  # leaving `with` closes the stream
""",
    "AsyncMLCEngine": """
from wherry import AsyncMLCEngine

async with AsyncMLCEngine("demo") as engine:
    answer = await engine.completions.create(prompt="Once upon a time", max_tokens=8)
    print(answer.choices[0].text)
""",
    "AsyncMLCEngine.of": """
from wherry.runtime.load.model import LoadedModel

engine = AsyncMLCEngine.of(LoadedModel.load("demo"))
await engine.close()
""",
    "AsyncMLCEngine.stats": """
print(engine.stats().running, "requests decode")
""",
    "AsyncMLCEngine.generate": """
from wherry.runtime.core.interface import SamplingParams

ids = engine.loaded.tokenizer.encode("Once upon a time")
async for event in engine.generate(ids, SamplingParams(max_tokens=8)):
    print(event.token)
""",
    "AsyncMLCEngine.close": """
engine = AsyncMLCEngine("demo")
await engine.close()
""",
    "AsyncStream.batch": """
stream = await engine.completions.create(prompt="Once", max_tokens=8, stream=True)
while chunks := await stream.batch():
    print("".join(chunk.choices[0].text for chunk in chunks))
""",
    "AsyncStream.cancel": """
async with await engine.completions.create(prompt="Once", stream=True) as stream:
    async for chunk in stream:
        stream.cancel()
""",
    "AsyncStream.close": """
stream = await engine.completions.create(prompt="Once", stream=True)
await stream.close()
""",
    "serve": """
from wherry.runtime import serve

serve("demo", port=8000, api_key="secret")
""",
    "create_app": """
from fastapi import FastAPI
from wherry.runtime import create_app

site = FastAPI()
site.mount("/llm", create_app(engine))  # POST /llm/v1/chat/completions
""",
}
