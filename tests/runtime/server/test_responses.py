"""OpenAI's Responses and conversations, with its own client."""

from __future__ import annotations

import json

import openai
import pytest
from openai.types.conversations import Conversation
from openai.types.responses import Response, ResponseItem, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from ..conftest import core_of
from ..live_server import live

TEXT = "Hello, wörld 🎉!"
EVENT = TypeAdapter(ResponseStreamEvent)
ITEM = TypeAdapter(ResponseItem)
SHOWING = "{{ messages | tojson }}|{{ tools | tojson }}"


def client_of(url, key="x"):
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


@pytest.fixture
def model(make):
    return make(TEXT, context=4096)


@pytest.fixture
def client(model):
    with live(model) as url, client_of(url) as client:
        yield client


def prompt(model):
    return model.tokenizer.decode(core_of(model).added[-1][0], skip_special_tokens=False)


def checked(answer):
    """What the client's types say of it, which it does not check itself."""
    type(answer).model_validate(answer.to_dict())
    return answer


def ask(client, input="the cat", **fields):
    return checked(client.responses.create(**{"model": "small", "input": input, **fields}))


def test_a_response(client, model):
    answer = ask(client, instructions="a", temperature=0.5, metadata={"k": "v"}, top_p=0.9)
    assert answer.output_text == TEXT and answer.status == "completed"
    assert (answer.temperature, answer.top_p, answer.metadata) == (0.5, 0.9, {"k": "v"})
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert prompt(model) == "<|system|>a<|user|>the cat<|assistant|>"


def test_a_stream(client):
    received = list(client.responses.create(model="small", input="the cat", stream=True))
    for i, event in enumerate(received):
        EVENT.validate_python(event.to_dict())
        assert event.sequence_number == i
    text = "".join(e.delta for e in received if e.type == "response.output_text.delta")
    assert text == received[-1].response.output_text == TEXT
    with client.responses.stream(model="small", input="the cat") as stream:
        assert stream.get_final_response().output_text == TEXT


def test_items_become_messages(make):
    model = make(TEXT, template=SHOWING, context=8192)
    items = [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "input_text", "text": "u"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [
            {"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "Let me", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": [
            {"type": "input_text", "text": "two"}]},
        {"role": "assistant", "content": "so"},
        {"role": "assistant", "content": "it is"},
        {"role": "user", "content": "and?"},
    ]  # fmt: skip
    with live(model) as url, client_of(url) as client:
        ask(client, items)
    messages = json.loads(prompt(model).split("|")[0])
    assert [m["role"] for m in messages] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "assistant", "user"
    ]  # fmt: skip
    assert (messages[2]["content"], messages[2]["reasoning_content"]) == ("Let me", "hm")
    assert [c["id"] for c in messages[2]["tool_calls"]] == ["c1", "c2"]
    assert [m["content"] for m in messages[3:]] == ["one", "two", "so", "it is", "and?"]


def test_an_answer_goes_on_from_one_before(client, model):
    first = ask(client, "the cat", instructions="a")
    second = ask(client, "sat", previous_response_id=first.id)
    assert prompt(model) == f"<|user|>the cat<|assistant|>{TEXT}<|user|>sat<|assistant|>"
    assert second.previous_response_id == first.id
    items = client.responses.input_items.list(second.id, order="asc").data
    for item in items:
        ITEM.validate_python(item.to_dict())
    assert [i.content[0].text for i in items] == ["the cat", TEXT, "sat"]
    client.responses.delete(first.id)  # what went on from it is whole by itself
    ask(client, "on", previous_response_id=second.id)
    assert prompt(model).count(TEXT) == 2


def test_pages_of_items(client):
    answer = ask(client, [{"role": "user", "content": str(i)} for i in range(7)])

    def texts(**options):
        return [i.content[0].text for i in client.responses.input_items.list(answer.id, **options)]

    assert texts(order="asc", limit=3) == list("0123456")  # the client asks for page after page
    assert texts(limit=2) == list("6543210")
    with pytest.raises(openai.BadRequestError, match="after"):
        texts(after="msg_other")
    with pytest.raises(openai.BadRequestError, match="limit"):
        texts(limit=1000)


def test_an_item_is_named_by_its_id(client, model):
    first = ask(client)
    said = {"type": "item_reference", "id": first.output[0].id}
    ask(client, [{"role": "user", "content": "a"}, said, {"role": "user", "content": "b"}])
    assert prompt(model) == f"<|user|>a<|assistant|>{TEXT}<|user|>b<|assistant|>"


def test_what_is_kept(client):
    answer = ask(client)
    assert checked(client.responses.retrieve(answer.id)).to_dict() == answer.to_dict()
    with pytest.raises(openai.BadRequestError) as e:
        client.responses.cancel(answer.id)
    assert e.value.code == "response_not_cancellable"
    assert client.responses.delete(answer.id) is None
    with pytest.raises(openai.BadRequestError, match="no item"):
        ask(client, [{"type": "item_reference", "id": answer.output[0].id}])
    unknown = (answer.id, ask(client, store=False).id, "resp_other")
    for id in unknown:
        for call in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
            with pytest.raises(openai.NotFoundError) as e:
                call(id)
            assert e.value.code == "response_not_found"
        with pytest.raises(openai.BadRequestError) as e:
            ask(client, previous_response_id=id)
        assert e.value.code == "previous_response_not_found"


def test_clients_with_other_keys_see_nothing(model, tmp_path):
    keys = {name: name * 16 for name in "ab"}
    entries = "".join(f"- {{name: {name}, key: {key}}}\n" for name, key in keys.items())
    path = tmp_path / "keys.yaml"
    path.write_text(f"keys:\n{entries}")
    path.chmod(0o600)
    with (
        live(model, keys=path) as url,
        client_of(url, keys["a"]) as client,
        client_of(url, keys["b"]) as other,
    ):
        answer = ask(client)
        conversation = client.conversations.create().id
        assert client.responses.retrieve(answer.id).id == answer.id
        ask(client, conversation=conversation, previous_response_id=None)
        for call in (other.responses.retrieve, other.responses.delete):
            with pytest.raises(openai.NotFoundError):
                call(answer.id)
        for call in (other.conversations.retrieve, other.conversations.delete):
            with pytest.raises(openai.NotFoundError):
                call(conversation)
        with pytest.raises(openai.NotFoundError):
            other.conversations.items.create(conversation, items=[])
        with pytest.raises(openai.BadRequestError) as e:
            ask(other, previous_response_id=answer.id)
        assert e.value.code == "previous_response_not_found"
        with pytest.raises(openai.BadRequestError) as e:
            ask(other, [{"type": "item_reference", "id": answer.output[0].id}])
        assert e.value.code == "item_not_found"
        assert client.responses.retrieve(answer.id).id == answer.id


def test_a_conversation(client, model):
    conversation = client.conversations.create(
        metadata={"topic": "a"}, items=[{"role": "user", "content": "the"}]
    )
    Conversation.model_validate(conversation.to_dict())
    answer = ask(client, "cat", conversation=conversation.id)
    assert answer.conversation.id == conversation.id
    ask(client, "sat", conversation={"id": conversation.id}, store=False)
    assert prompt(model) == (f"<|user|>the<|user|>cat<|assistant|>{TEXT}<|user|>sat<|assistant|>")
    items = list(client.conversations.items.list(conversation.id, order="asc", limit=2))
    assert [i.content[0].text for i in items] == ["the", "cat", TEXT, "sat", TEXT]
    one = client.conversations.items.retrieve(items[0].id, conversation_id=conversation.id)
    assert one.to_dict() == items[0].to_dict()
    client.conversations.items.delete(items[0].id, conversation_id=conversation.id)
    client.conversations.items.create(conversation.id, items=[{"role": "user", "content": "on"}])
    assert len(list(client.conversations.items.list(conversation.id))) == 5
    changed = client.conversations.update(conversation.id, metadata={"topic": "b"})
    assert (
        client.conversations.retrieve(conversation.id).metadata
        == {"topic": "b"}
        == changed.metadata
    )
    assert client.conversations.delete(conversation.id).deleted
    with pytest.raises(openai.NotFoundError):
        ask(client, conversation=conversation.id)


def test_a_stream_that_fails_says_so_last(client, model):
    core_of(model).fail_with = "the device is gone"
    stream = list(client.responses.create(model="small", input="a", stream=True))
    EVENT.validate_python(stream[-1].to_dict())
    assert stream[-1].type == "response.failed"
    assert stream[-1].response.error.message == "the device is gone"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(stream[-1].response.id)


def test_logprobs(client):
    answer = ask(client, top_logprobs=2, include=["message.output_text.logprobs"])
    logprobs = answer.output[0].content[0].logprobs
    assert len(logprobs) == answer.usage.output_tokens - 1  # but for the end token
    assert len(logprobs[0].top_logprobs) == 2


def test_a_schema_holds_the_answer(make):
    class Answer(BaseModel):
        a: int

    model = make(TEXT)
    with live(model) as url, client_of(url) as client, pytest.raises(openai.APIStatusError):
        client.responses.parse(model="small", input="a", text_format=Answer)
    assert core_of(model).added[-1][1].grammar is not None


def test_tokens_are_counted_before(client):
    counted = client.responses.input_tokens.count(model="small", input="the cat")
    assert counted.input_tokens == ask(client).usage.input_tokens


def test_the_oldest_turns_are_left_out(client):
    turns = [{"role": "user", "content": f"{i} " + "the cat " * 400} for i in range(8)]
    with pytest.raises(openai.BadRequestError, match="truncation"):
        ask(client, input=turns)
    answer_cut = ask(client, input=turns, truncation="auto")
    assert answer_cut.truncation == "auto"
    later = [ask(client, input=turns[i:]) for i in (6, 7)]
    assert answer_cut.usage.input_tokens in [answer.usage.input_tokens for answer in later]
    assert later[0].truncation == "disabled"


IMAGE = {"role": "user", "content": [{"type": "input_image", "image_url": "x", "detail": "low"}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [{"type": "newer"}]}, "tools[0].type"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"input": []}, "input"),
        ({"input": [IMAGE]}, "input[0].content[0].image_url"),
        ({"input": [{"type": "newer", "id": "w"}]}, "input[0].type"),
        ({"input": [{"type": "item_reference", "id": "w"}]}, "input[0]"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input"),
        ({"previous_response_id": "a", "conversation": "b"}, "previous_response_id"),
        ({"metadata": {str(i): "" for i in range(17)}}, "metadata"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"text": {"format": {"type": "json_schema"}}}, "response_format"),
    ],
)
def test_what_is_refused_is_named(client, fields, param):
    with pytest.raises(openai.BadRequestError) as e:
        ask(client, **fields)
    assert (e.value.param or "").startswith(param)


def test_response_of_the_client_is_what_is_checked():
    with pytest.raises(ValueError):
        Response.model_validate({"id": "resp_1"})
