"""A file of prompts, one a line; the answers as JSON lines, in the order of the file.

python batch.py PROMPTS.txt [MODEL] > answers.jsonl
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wherry import MLCEngine

PROMPTS = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("prompts.txt")
MODEL = sys.argv[2] if len(sys.argv) > 2 else "demo"
AT_A_TIME = 8  # the engine computes a token of each in one step


def answer(engine: MLCEngine, prompt: str) -> str:
    """The answer to one line."""
    messages = [{"role": "user", "content": prompt}]
    completion = engine.chat.completions.create(messages=messages, temperature=0, max_tokens=64)
    return completion.choices[0].message.content


prompts = [line for line in PROMPTS.read_text(encoding="utf-8").splitlines() if line.strip()]
with MLCEngine(MODEL) as engine, ThreadPoolExecutor(AT_A_TIME) as threads:
    answers = threads.map(lambda prompt: answer(engine, prompt), prompts)
    for prompt, text in zip(prompts, answers, strict=True):
        print(json.dumps({"prompt": prompt, "answer": text}, ensure_ascii=False))
