"""Several answers at the same time, each as a stream; cancelling a task ends its request."""

import asyncio
import sys

from wherry import AsyncMLCEngine

MODEL = sys.argv[1] if len(sys.argv) > 1 else "demo"
QUESTIONS = ("Who are you?", "Count from one to ten.", "What is two plus three?")


async def ask(engine: AsyncMLCEngine, question: str) -> str:
    """Ask one question and collect its chunks."""
    messages = [{"role": "user", "content": question}]
    pieces = []
    async for chunk in await engine.chat.completions.create(
        messages=messages, stream=True, temperature=0, max_tokens=64
    ):
        pieces.append(chunk.choices[0].delta.content or "")
    return "".join(pieces)


async def main() -> None:
    """Ask all of them, and print the answers in their order."""
    async with AsyncMLCEngine(MODEL) as engine:
        answers = await asyncio.gather(*(ask(engine, question) for question in QUESTIONS))
    for question, text in zip(QUESTIONS, answers, strict=True):
        print(f"> {question}\n{text}")


asyncio.run(main())
