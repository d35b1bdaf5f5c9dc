# ruff: noqa: F821, F704
"""What Python in a browser is asked, by pyodide.mjs: `given` comes in, `out` goes out."""

import asyncio
import gc
import sys
from pathlib import Path

from wherry import AsyncMLCEngine, MLCEngine
from wherry.errors import ToolchainError


async def failure(work):
    try:
        await work
    except Exception as error:
        return [type(error).__name__, str(error), getattr(error, "param", None)]


prompts, tokens = given["prompts"], given["tokens"]
greedy = {"temperature": 0, "max_tokens": tokens, "ignore_eos": True}
phases = set()
engine = AsyncMLCEngine(
    "/models/demo", progress=lambda what, done, total: phases.add(what), **given["engine"]
)
async with engine:
    complete = await asyncio.gather(
        *(engine.completions.create(prompt=prompt, logprobs=1, **greedy) for prompt in prompts)
    )
    out["together"] = [answer.choices[0].text for answer in complete]
    out["dumped"] = complete[0].model_dump()
    streamed = []
    async for chunk in await engine.completions.create(prompt=prompts[1], stream=True, **greedy):
        streamed.append(chunk.choices[0].text)
    out["streamed"] = streamed
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    chat = await engine.chat.completions.create(
        messages=messages, temperature=0, top_logprobs=2, logprobs=True
    )
    out["chat"] = chat.model_dump()
    pieces = [
        chunk
        async for chunk in await engine.chat.completions.create(
            messages=messages, temperature=0, stream=True, stream_options={"include_usage": True}
        )
    ]
    out["pieces"] = [piece.model_dump() for piece in pieces]

    # A cancelled task, a closed stream, and a garbage-collected one all free their pages.
    task = asyncio.ensure_future(engine.completions.create(prompt=prompts[0], **greedy))
    stream = await engine.completions.create(prompt=prompts[1], stream=True, **greedy)
    dropped = await engine.completions.create(prompt=prompts[2], stream=True, **greedy)
    await stream.__anext__()
    await dropped.__anext__()
    running = (await engine.stats()).running
    task.cancel()
    await stream.close()
    del dropped
    gc.collect()
    out["cancelled"] = isinstance(
        (await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError
    )
    await engine.completions.create(prompt=prompts[3], temperature=0, max_tokens=1)
    stats = await engine.stats()
    out["ended"] = [
        running,
        stats.running + stats.waiting + stats.prefilling,
        stats.pages_total - stats.pages_free,
    ]

    wrong = engine.completions.create(prompt=prompts[0], temperature=-1)
    out["wrong"] = await failure(wrong)
    out["dimensions"] = await failure(engine.embeddings.create(input="a", dimensions=-1))
out["phases"] = sorted(phases)
async with AsyncMLCEngine("/models/embedder", **given["engine"]) as embedder:
    embedded = await embedder.embeddings.create(input=given["texts"], dimensions=8)
    out["embeddings"] = embedded.model_dump()
Path("/models/none").mkdir()
Path("/models/none/wherry.json").write_text("{}")
none = AsyncMLCEngine("/models/none")
out["none"] = await failure(none.completions.create(prompt="a"))
try:
    MLCEngine("/models/demo", pack_dir="/packed")
except TypeError as error:
    out["option"] = str(error)
except ToolchainError as error:
    out["option"] = str(error)
try:
    MLCEngine("/models/demo", **given["engine"])
    out["sync"] = "waited"
except ToolchainError as error:
    out["sync"] = str(error)
out["modules"] = sorted(name for name in sys.modules if name.startswith("wherry"))
