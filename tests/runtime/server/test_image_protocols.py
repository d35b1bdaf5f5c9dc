"""Images in the protocols of Anthropic, Ollama and the Responses API, over a scripted core."""

from __future__ import annotations

import openai
import pytest

from wherry.runtime import create_app
from wherry.runtime.server.endpoints.ollama.abilities import abilities

from ..conftest import core_of
from ..live_server import live
from ..vision_model import BOTH, LISTS, ROWS, seeing_engines, text
from .asking import client_of
from .image_requests import (
    BROKEN,
    CALL,
    CALLED,
    CHAT,
    DATA,
    LOOK,
    MESSAGES,
    OTHER,
    OUTPUT,
    QUESTION,
    RESPONSES,
    RESULT,
    SAME,
    URL,
    block,
    chat,
    post,
    seen,
    typed,
    user,
)
from .socket_client import SocketClient

USERS = BOTH[BOTH.index("{% for m in messages") :]  # knows no tools
# writes results as text
TEXTS = BOTH.replace("{% if m.content is string", "{% if m.content is string or m.role == 'tool'")


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


def last(engine):
    """The core's last request: its prompt, as tokens, and its spans."""
    core = core_of(engine.loaded)
    return core.added[-1][0], core.spans[-1]


def written(engine) -> str:
    """The core's last prompt as text, an image of some tiles as one <image>."""
    said = engine.loaded.tokenizer.decode(last(engine)[0], skip_special_tokens=False)
    begin, end = said.find("<fake"), said.rfind("around_image>")
    return said if begin < 0 else said[:begin] + "<image>" + said[end + len("around_image>") :]


@pytest.mark.parametrize("template", [LISTS, BOTH], ids=["lists", "both"])
def test_one_picture_by_all_protocols(seeing, template):
    engine = seeing(template)
    with client_of(create_app(engine)) as client:
        got = {}
        for path, fields in SAME.items():
            answer = post(client, path, **fields)
            assert "Yes." in answer.text and "x-wherry-ignored" not in answer.headers, path
            got[path] = last(engine)
    assert len(got[CHAT][1]) == 5
    assert all(one == got[CHAT] for one in got.values())


def test_streams(client, engine):
    ends = {MESSAGES: "end_turn", RESPONSES: "response.completed", "/api/chat": '"done":true'}
    for path, end in ends.items():
        answer = post(client, path, **SAME[path] | {"stream": True})
        assert end in answer.text and len(last(engine)[1]) == 5


def test_counts(client, engine):
    for path, count in ((MESSAGES, "count_tokens"), (RESPONSES, "input_tokens")):
        post(client, path, **SAME[path])
        answer = client.post(f"{path}/{count}", json={"model": "seeing", **SAME[path]})
        assert answer.json()["input_tokens"] == len(last(engine)[0]), answer.text


def test_a_data_url_as_anthropics_source(client, engine):
    post(client, MESSAGES, **SAME[MESSAGES])
    expected = last(engine)
    post(client, MESSAGES, messages=[user(block(type="url", url=URL), text(QUESTION))])
    assert last(engine) == expected


def test_order_among_texts(client, engine):
    content = [text("A "), block(), text(" B "), block(OTHER.partition(",")[2]), text(" C")]
    post(client, MESSAGES, messages=[user(*content)])
    prompt, spans = last(engine)
    said = engine.loaded.tokenizer.decode(prompt, skip_special_tokens=False)
    assert len(spans) == 5 + 3 and "A <fake" in said and "> B <fake" in said and "> C<" in said
    items = [typed("A "), seen(), typed(" B "), seen(OTHER), typed(" C")]
    post(client, RESPONSES, input=[user(*items)])
    assert last(engine) == (prompt, spans)


# ---- results of tools ----


def results_of(client, engine, content, **more) -> str:
    """The end of the prompt with a result in Anthropic's shape; the Responses API has the same."""
    turns = [user(text("Look.")), {"role": "assistant", "content": [CALL]}]
    post(client, MESSAGES, messages=[*turns, user(RESULT | {"content": content} | more)])
    if not more:
        prompt, said = last(engine), written(engine)
        parts = [seen() if one["type"] == "image" else typed(one["text"]) for one in content]
        items = [user(typed("Look.")), CALLED, OUTPUT | {"output": parts}]
        post(client, RESPONSES, input=items)
        assert (written(engine), last(engine)) == (said, prompt)
    return written(engine)


@pytest.mark.parametrize(
    ("template", "end"),
    [
        (BOTH, "<|tool|>It: <image><|assistant|>"),
        (USERS, "<|user|>Result of look:\nIt: <image><|assistant|>"),
        (TEXTS, "<|tool|>It: <|user|><image><|assistant|>"),
        (LISTS, "User: Result of look:\nIt: <image><end_of_utterance>\nAssistant:"),
    ],
    ids=["results", "users", "texts", "lists"],
)
def test_images_in_results(seeing, template, end):
    engine = seeing(template)
    with client_of(create_app(engine)) as client:
        content = [text("It: "), block()]
        assert results_of(client, engine, content).endswith(end)
        assert len(last(engine)[1]) == 5
        only = results_of(client, engine, [block()], is_error=True)
        assert only.endswith(end.replace("It", "Error"))


def test_images_of_results_that_are_texts(seeing):
    """Those of all results in a row stand before the next text of the user, in their order."""
    engine = seeing(TEXTS)
    calls = [CALL, CALL | {"id": "toolu_2"}]
    results = [
        RESULT | {"content": [block(), text("It")]},
        RESULT | {"tool_use_id": "toolu_2", "content": [block(OTHER.partition(",")[2])]},
    ]
    turns = [user(text("Look.")), {"role": "assistant", "content": calls}]
    with client_of(create_app(engine)) as client:
        answer = post(client, MESSAGES, messages=[*turns, user(*results, text("And?"))])
        assert "images-after-results" in answer.headers["x-wherry-adapted"]
        said = "<|tool|>It<|tool|>The next message has the image.<|user|><image>And?<|assistant|>"
        assert written(engine).endswith(said)
        post(client, CHAT, messages=[user(chat(), chat(OTHER))])
        digests = [[span.digest for span in one] for one in core_of(engine.loaded).spans]
        assert digests[0] == digests[1]
        later = [{"role": "assistant", "content": "Yes."}, user(text("Why?"))]
        post(client, MESSAGES, messages=[*turns, user(*results), *later])
        assert written(engine).endswith("<|user|><image><|assistant|>Yes.<|user|>Why?<|assistant|>")
    engine = seeing(TEXTS.replace("m.role == 'tool'", "true"))  # has no places at all
    with client_of(create_app(engine)) as client:
        body = {"model": "seeing", "max_tokens": 9, "messages": [*turns, user(*results)]}
        answer = client.post(MESSAGES, json=body)
        assert answer.status_code == 400 and "writes 0 places for the 2 images" in answer.text


def test_images_beside_results(client, engine):
    turns = [user(text("Look.")), {"role": "assistant", "content": [CALL]}]
    content = [RESULT | {"content": "seen"}, block(), text("And?")]
    post(client, MESSAGES, messages=[*turns, user(*content)], tools=[LOOK])
    assert written(engine).endswith("<|tool|>seen<|user|><image>And?<|assistant|>")


def test_images_in_ollamas_results(client, engine):
    call = {"function": {"name": "look", "arguments": {}}}
    result = {"role": "tool", "tool_name": "look", "content": "It", "images": [DATA]}
    said = [{"role": "user", "content": "Look."}, {"role": "assistant", "tool_calls": [call]}]
    post(client, "/api/chat", messages=[*said, result])
    assert written(engine).endswith("<|tool|><image>It<|assistant|>")


# ---- stored items ----


def test_a_response_that_continues(client, engine):
    first = post(client, RESPONSES, **SAME[RESPONSES]).json()
    _, spans = last(engine)
    listed = client.get(f"{RESPONSES}/{first['id']}/input_items").json()["data"][0]["content"]
    assert listed == [seen(detail="auto"), typed(QUESTION)]
    post(client, RESPONSES, input="Why?", previous_response_id=first["id"])
    assert written(engine).endswith("<image>What is it?<|assistant|>Yes.<|user|>Why?<|assistant|>")
    assert last(engine)[1] == spans


def test_a_conversation(client, engine):
    items = {"items": [{"type": "message", **user(seen(), typed("A."))}]}
    id = client.post("/v1/conversations", json=items).json()["id"]
    post(client, RESPONSES, input=[user(seen(OTHER), typed("B."))], conversation=id)
    assert len(last(engine)[1]) == 5 + 3
    post(client, RESPONSES, input="C.", conversation=id)
    assert len(last(engine)[1]) == 5 + 3
    call = client.post(f"/v1/conversations/{id}/items", json={"items": [CALLED]})
    output = {"items": [OUTPUT | {"output": [seen()]}]}
    assert client.post(f"/v1/conversations/{id}/items", json=output).status_code == 200, call.text
    post(client, RESPONSES, input="D.", conversation=id)
    assert len(last(engine)[1]) == 5 + 3 + 5


def test_a_summary_of_a_conversation_with_an_image(client, engine):
    compacted = post(client, f"{RESPONSES}/compact", **SAME[RESPONSES]).json()["output"]
    assert len(last(engine)[1]) == 5
    post(client, RESPONSES, input=[*compacted, user(seen(OTHER), typed("And this?"))])
    assert written(engine).startswith("<|user|>Summary of our conversation so far:\n\nYes.\n\n<im")
    assert len(last(engine)[1]) == 3


def test_a_websocket(engine):
    with live(engine.loaded) as url, SocketClient(url) as socket:
        first = socket.ask(model="seeing", store=False, **SAME[RESPONSES])
        assert first["output"][-1]["content"][0]["text"] == "Yes."
        more = {"store": False, "previous_response_id": first["id"]}
        socket.ask(model="seeing", input="Why?", **more)
        assert len(last(engine)[1]) == 5
        bad = socket.ask(model="seeing", input=[user(seen(f"data:;base64,{BROKEN}"))])
        assert bad["error"]["param"] == "input[0].content[0].image_url"


def test_a_detail_without_effect_is_listed(client):
    items = [user(seen(detail="high"), typed(QUESTION))]
    answer = post(client, RESPONSES, input=items)
    assert answer.headers["x-wherry-ignored"] == "input.content.detail"


def test_ollamas_name_of_the_capability():
    class Manifest:
        capabilities = ("chat", "vision")

    assert abilities(Manifest(), None) == ["completion", "vision"]


def test_openais_client(engine):
    with (
        live(engine.loaded) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        items = SAME[RESPONSES]["input"]
        answer = client.responses.create(model="seeing", input=items)
        assert answer.output_text == "Yes." and answer.usage.input_tokens == len(last(engine)[0])
        with client.responses.stream(model="seeing", input=items) as stream:
            assert stream.get_final_response().output_text == "Yes."
        assert [len(spans) for spans in core_of(engine.loaded).spans] == [5, 5]
        assert answer.usage.input_tokens > 5 * ROWS
