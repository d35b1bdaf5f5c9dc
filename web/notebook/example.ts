/** The cells of a new notebook. */
export const EXAMPLE: readonly string[] = [
  `from wherry import MLCEngine

engine = MLCEngine("models/demo/", max_batch=4)`,
  `messages = [{"role": "user", "content": "What is the capital of France?"}]
for chunk in engine.chat.completions.create(messages=messages, stream=True, temperature=0):
    print(chunk.choices[0].delta.content or "", end="", flush=True)`,
  `import asyncio
from wherry import AsyncMLCEngine

async with AsyncMLCEngine("models/demo/", max_batch=4) as several:
    questions = ["Who are you?", "Count from one to ten.", "What is two plus three?"]
    answers = await asyncio.gather(*(
        several.chat.completions.create(
            messages=[{"role": "user", "content": question}], temperature=0, max_tokens=32
        )
        for question in questions
    ))
for question, answer in zip(questions, answers):
    print(question, "->", answer.choices[0].message.content)`,
  `engine.stats()`,
];
