"""Images that the protocols of Anthropic, Ollama and Responses refuse, with their places."""

from __future__ import annotations

import pytest

from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from ..vision_model import BOTH, file_of, picture, seeing_engines, text, url_of
from .almost_right import fuzz
from .asking import client_of
from .image_requests import (
    BROKEN,
    CALL,
    CALLED,
    DATA,
    MESSAGES,
    OUTPUT,
    RESPONSES,
    RESULT,
    SAME,
    URL,
    block,
    seen,
    typed,
    user,
)
from .test_fuzz_protocols import check


@pytest.fixture
def seeing():
    with seeing_engines() as build:
        yield build


@pytest.fixture
def engine(seeing):
    return seeing()


@pytest.fixture
def client(engine):
    with client_of(create_app(engine)) as client:
        yield client


IN_ANTHROPIC = "messages[0].content[0]"
REMOTE = "https://example.org/cat.png"
WRONG = [
    (MESSAGES, {"messages": [user(block(BROKEN))]}, f"{IN_ANTHROPIC}.source.data: the image"),
    (MESSAGES, {"messages": [user(block(""))]}, f"{IN_ANTHROPIC}.source.data has an empty image"),
    (MESSAGES, {"messages": [user(block(f"{DATA[:9]}!{DATA[9:]}"))]},
     f"{IN_ANTHROPIC}.source.data is not base64: character 9 of it is wrong"),
    (MESSAGES, {"messages": [user(block(type="url", url=REMOTE))]},
     f"{IN_ANTHROPIC}.source.url: images are not fetched from addresses"),
    (MESSAGES, {"messages": [user(block(type="file", file_id="f"))]},
     f"{IN_ANTHROPIC}.source is of type 'file'"),
    (MESSAGES, {"messages": [user(block(type="base64"))]}, f"{IN_ANTHROPIC}.source is of type"),
    (MESSAGES, {"messages": [user({"type": "image"})]}, "source"),
    (MESSAGES, {"messages": [user(RESULT | {"content": [text("a"), block(BROKEN)]})]},
     f"{IN_ANTHROPIC}.content[1].source.data: the image"),
    (MESSAGES, {"messages": [user(text("a")), {"role": "assistant", "content": [block()]}]},
     "messages[1].content[0] is of type 'image'"),
    (MESSAGES, {"messages": [user(text("a"))], "system": [block()]}, "system[0] is of type"),
    (MESSAGES, {"messages": [user(*[block()] * 33)]}, "more than 32 images"),
    ("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [DATA, BROKEN]}]},
     "messages[0].images[1]: the image cannot be read"),
    ("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [URL]}]},
     "messages[0].images[0] is not base64: character 4"),
    ("/api/chat", {"messages": [{"role": "user", "content": "a", "images": [3]}]}, "images"),
    ("/api/chat", {"messages": [{"role": "system", "content": "a", "images": [DATA]}]},
     "messages[0].images[0]: images are read in messages of the user"),
    ("/api/generate", {"prompt": "a", "images": [BROKEN]}, "images[0]: the image cannot be read"),
    ("/api/generate", {"prompt": "a", "images": [DATA], "raw": True}, "with raw or suffix"),
    ("/api/generate", {"prompt": "a", "images": [DATA], "suffix": "b"}, "with raw or suffix"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "fields", "reason"), WRONG)
def test_what_is_refused_names_its_place(client, engine, path, fields, reason):
    body = {"model": "seeing", "stream": False, **fields}
    answer = client.post(path, json=body | ({"max_tokens": 9} if path == MESSAGES else {}))
    assert answer.status_code == 400, answer.text
    problem = answer.json()["error"]
    assert reason in (problem["message"] if path == MESSAGES else problem), answer.text
    assert not core_of(engine.loaded).added


PART = "input[0].content[0]"


@pytest.mark.parametrize(
    ("items", "param", "code"),
    [
        ([user(seen(f"data:;base64,{BROKEN}"))], f"{PART}.image_url", "invalid_image"),
        ([user(seen(REMOTE))], f"{PART}.image_url", "unsupported_content"),
        ([user(seen("x"))], f"{PART}.image_url", "invalid_image"),
        ([user({"type": "input_image"})], f"{PART}.image_url", "invalid_image"),
        ([user({"type": "input_image", "image_url": {"url": URL}})],
         f"{PART}.image_url", "invalid_image"),
        ([user({"type": "input_image", "file_id": "f"})],
         f"{PART}.file_id", "unsupported_content"),
        ([user(seen(detail="x"))], "input", None),
        ([user({"type": "input_file", "file_id": "f"})], f"{PART}.type", "unsupported_content"),
        ([user(typed("a")), {"role": "assistant", "content": [seen()]}],
         "input[1].content[0].type", "unsupported_content"),
        ([{"role": "developer", "content": [seen()]}], f"{PART}.type", "unsupported_content"),
        ([CALLED, {"type": "web_search_call", "id": "w"},
          OUTPUT | {"output": [typed("a"), seen("data:;base64,")]}],
         "input[2].output[1].image_url", "invalid_image"),
    ],
)  # fmt: skip
def test_what_is_refused_in_responses(client, engine, items, param, code):
    answer = client.post(RESPONSES, json={"model": "seeing", "input": items})
    assert answer.status_code == 400, answer.text
    problem = answer.json()["error"]
    assert (problem["code"], problem["param"]) == (code, param)
    assert not core_of(engine.loaded).added


def test_a_broken_image_of_an_earlier_turn(client):
    items = {"items": [{"type": "message", **user(typed("a"), seen("data:;base64,"))}]}
    id = client.post("/v1/conversations", json=items).json()["id"]
    answer = client.post(RESPONSES, json={"model": "seeing", "input": "b", "conversation": id})
    assert answer.json()["error"]["param"] == "conversation[0].content[1].image_url"


def test_a_model_of_text_refuses_images(make):
    places = {
        MESSAGES: "messages[0].content[0].source.data",
        RESPONSES: f"{PART}.image_url",
        "/api/chat": "messages[0].images[0]",
        "/api/generate": "images[0]",
    }
    with client_of(create_app(MLCEngine.of(make(template=BOTH)))) as client:
        for path, place in places.items():
            more = {"max_tokens": 9} if path == MESSAGES else {}
            answer = client.post(path, json={"model": "small", **SAME[path], **more})
            assert answer.status_code == 400, answer.text
            assert f"{place} is not supported; this model reads text, and no images" in answer.text


SMALL = url_of(file_of(picture(8, 8)))
IMAGE = block(SMALL.partition(",")[2])
ITEMS = [
    user(seen(SMALL, detail="low"), typed("a")),
    CALLED,
    OUTPUT | {"output": [seen(SMALL), typed("b")]},
]
TURNS = [
    user(IMAGE, text("a"), block(type="url", url=SMALL)),
    {"role": "assistant", "content": [CALL]},
    user(RESULT | {"content": [text("b"), IMAGE]}),
]
BODIES = {
    MESSAGES: {"model": "seeing", "max_tokens": 9, "messages": TURNS},
    f"{MESSAGES}/count_tokens": {"model": "seeing", "messages": TURNS},
    RESPONSES: {"model": "seeing", "input": ITEMS},
    f"{RESPONSES}/input_tokens": {"model": "seeing", "input": ITEMS},
    "/v1/conversations": {"items": ITEMS},
}


def test_bodies_that_are_almost_right():
    statuses = []

    def count(path, answer):
        check(path, answer)
        statuses.append(answer.status_code)

    with seeing_engines() as build:
        fuzz(lambda *_, **options: build(**options).loaded, BODIES, count, range(200))
    assert {200, 400} <= set(statuses)
