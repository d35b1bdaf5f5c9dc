"""The clients of Anthropic, Ollama and OpenAI, each with an image, against argv[1].

The model says "Yes.". argv[2] is the image's file.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import anthropic
import ollama
import openai

URL, FILE = sys.argv[1], Path(sys.argv[2])
MODEL, QUESTION = "seeing", "What is it?"
DATA = base64.b64encode(FILE.read_bytes()).decode()
DATA_URL = f"data:image/png;base64,{DATA}"
SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}


def anthropics() -> set[int]:
    client = anthropic.Anthropic(base_url=URL, api_key="x", max_retries=0)
    image = {"type": "image", "source": SOURCE}
    turns = [{"role": "user", "content": [image, {"type": "text", "text": QUESTION}]}]
    answer = client.messages.create(model=MODEL, max_tokens=9, messages=turns)
    assert answer.content[0].text == "Yes.", answer
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]}
    turns += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    with client.messages.stream(model=MODEL, max_tokens=9, messages=turns) as stream:
        assert stream.get_final_text() == "Yes."
    try:
        image["source"] = SOURCE | {"data": "aGk="}
        client.messages.create(model=MODEL, max_tokens=9, messages=turns)
        raise AssertionError("a broken image was accepted")
    except anthropic.BadRequestError as e:
        assert "messages[0].content[0].source.data" in str(e), e
    used = answer.usage
    return {used.input_tokens + used.cache_read_input_tokens}


def ollamas() -> set[int]:
    client = ollama.Client(host=URL)
    message = {"role": "user", "content": QUESTION, "images": [str(FILE)]}
    answer = client.chat(model=MODEL, messages=[message])
    assert answer.message.content == "Yes.", answer
    generated = client.generate(model=MODEL, prompt=QUESTION, images=[FILE.read_bytes()])
    assert generated.response == "Yes.", generated
    return {answer.prompt_eval_count, generated.prompt_eval_count}


def openais() -> set[int]:
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="x", max_retries=0)
    parts = [
        {"type": "input_image", "image_url": DATA_URL, "detail": "auto"},
        {"type": "input_text", "text": QUESTION},
    ]
    answer = client.responses.create(model=MODEL, input=[{"role": "user", "content": parts}])
    assert answer.output_text == "Yes.", answer
    again = client.responses.create(model=MODEL, input="Why?", previous_response_id=answer.id)
    assert again.usage.input_tokens > answer.usage.input_tokens
    return {answer.usage.input_tokens}


counts = anthropics() | ollamas() | openais()
assert len(counts) == 1, counts
print("all is well")
