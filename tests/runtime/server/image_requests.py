"""Images as the clients of each protocol send them."""

from __future__ import annotations

from ..vision_model import file_of, picture, text, url_of

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
QUESTION = "What is it?"
URL = url_of(file_of(picture(64, 64)))
DATA = URL.partition(",")[2]
OTHER = url_of(file_of(picture(64, 32, 1)))
BROKEN = "aGk="
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
LOOK = {"name": "look", "input_schema": {"type": "object"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1"}
CALLED = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1"}


def post(client, path, **fields):
    body = {"model": "seeing", "stream": False, **fields}
    answer = client.post(path, json=body | ({"max_tokens": 50} if path == MESSAGES else {}))
    assert answer.status_code == 200, answer.text
    return answer


def block(data: str = DATA, **source) -> dict:
    """An image in Anthropic's shape."""
    base64 = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source or base64}


def seen(url: str = URL, **fields) -> dict:
    """An image in the Responses API's shape."""
    return {"type": "input_image", "image_url": url, **fields}


def typed(said: str) -> dict:
    return {"type": "input_text", "text": said}


def user(*content) -> dict:
    return {"role": "user", "content": list(content)}


def chat(url: str = URL) -> dict:
    return {"type": "image_url", "image_url": {"url": url}}


# the same request in each protocol
SAME = {
    CHAT: {"messages": [user(chat(), text(QUESTION))]},
    MESSAGES: {"messages": [user(block(), text(QUESTION))]},
    RESPONSES: {"input": [user(seen(detail="auto"), typed(QUESTION))]},
    "/api/chat": {"messages": [{"role": "user", "content": QUESTION, "images": [DATA]}]},
    "/api/generate": {"prompt": QUESTION, "images": [DATA]},
}
