"""An answer while it is written. Leaving the loop stops it."""

import sys

from wherry import MLCEngine

MODEL = sys.argv[1] if len(sys.argv) > 1 else "demo"
SENTENCES = 3

with MLCEngine(MODEL) as engine:
    messages = [{"role": "user", "content": "Tell me a story about a fox."}]
    sentences = 0
    with engine.chat.completions.create(messages=messages, stream=True, seed=1) as stream:
        for chunk in stream:
            text = chunk.choices[0].delta.content or ""
            print(text, end="", flush=True)
            sentences += text.count(".")
            if sentences >= SENTENCES:
                break  # the engine ends the request
    print()
