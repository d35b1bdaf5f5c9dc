"""A conversation: what was said before is sent again with each message."""

import sys

from wherry import MLCEngine

MODEL = sys.argv[1] if len(sys.argv) > 1 else "demo"

with MLCEngine(MODEL) as engine:
    messages = []
    for question in ("What is the capital of France?", "And of Norway?"):
        messages.append({"role": "user", "content": question})
        answer = engine.chat.completions.create(messages=messages, temperature=0, max_tokens=64)
        reply = answer.choices[0].message.content
        messages.append({"role": "assistant", "content": reply})
        print(f"> {question}\n{reply}")
