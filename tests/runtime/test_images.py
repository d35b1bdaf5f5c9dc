"""Images in chats, from a request to what the core gets, over a scripted core."""

from __future__ import annotations

import openai
import pytest
from fastapi.testclient import TestClient
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

from wherry.runtime import MLCEngine, RequestError, create_app
from wherry.runtime.caller import Caller

from .conftest import core_of
from .live_server import live
from .vision_model import (
    BOTH,
    FAKE,
    GLOBAL,
    LISTS,
    ROWS,
    SETTINGS,
    file_of,
    part,
    picture,
    seeing_engines,
    text,
    url_of,
)

SQUARE, WIDE = (2, 2), (1, 2)  # rows and columns of tiles


@pytest.fixture
def seeing():
    with seeing_engines() as build:
        yield build


def shown(rows: int, columns: int) -> str:
    """The text of an image in a prompt."""
    return get_image_prompt_string(rows, columns, ROWS, FAKE, "<image>", GLOBAL)


def user(*content) -> dict:
    return {"role": "user", "content": list(content)}


def prompted(engine, *messages, **fields):
    """The prompt as text, and its spans; the prompt's tokens are those of the text."""
    answer = engine.chat.completions.create(messages=list(messages), **fields)
    core, tokenizer = core_of(engine.loaded), engine.loaded.tokenizer
    prompt, _ = core.added[-1]
    assert answer.usage.prompt_tokens == len(prompt)
    written = tokenizer.decode(prompt, skip_special_tokens=False)
    assert tokenizer.encode(written) == prompt
    return written, prompt, core.spans[-1]


def places(engine, prompt) -> list[int]:
    token = engine.loaded.tokenizer.backend.token_to_id("<image>")
    return [i for i, id in enumerate(prompt) if id == token]


@pytest.mark.parametrize("template", [LISTS, BOTH], ids=["lists", "both"])
def test_one_image(seeing, template):
    engine = seeing(template)
    written, prompt, spans = prompted(engine, user(part(64, 64), text("What is it?")))
    question = f"{shown(*SQUARE)}What is it?"
    if template is LISTS:
        assert written == f"<|im_start|>User:{question}<end_of_utterance>\nAssistant:"
    else:
        assert written == f"<|user|>{question}<|assistant|>"
    assert [span.rows for span in spans] == [ROWS] * 5
    rows = [span.first + i for span in spans for i in range(span.rows)]
    assert rows == places(engine, prompt)
    assert {len(span.patches) for span in spans} == {16 * 3 * 8 * 8}
    order = (0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15)  # 2 x 2 patches become a row
    assert {span.positions for span in spans} == {order}
    assert len({span.digest for span in spans}) == 5


def test_an_image_that_is_not_split(seeing):
    processor = SETTINGS["processor"] | {"size": {"longest_edge": 32}, "do_image_splitting": False}
    engine = seeing(vision=SETTINGS | {"processor": processor})
    written, _, spans = prompted(engine, user(part(32, 32)))
    assert written == f"<|user|>{shown(0, 0)}<|assistant|>"
    (span,) = spans
    assert span.positions[6] == 6  # the third of the second row: by channel, then row, then column
    pixels = [picture(32, 32).getpixel((x, y)) for y in range(8, 16) for x in range(16, 24)]
    assert span.patches[6 * 192 : 7 * 192] == bytes(p[c] for c in range(3) for p in pixels)


def test_three_images_with_text_between(seeing):
    engine = seeing(LISTS)
    first, second = part(64, 64, 1), part(64, 32, 2)
    content = [text("A: "), first, text(" B: "), second, text(" again "), first, text("Same?")]
    written, prompt, spans = prompted(engine, user(*content))
    assert written == (
        f"<|im_start|>User: A: {shown(*SQUARE)} B: {shown(*WIDE)} again {shown(*SQUARE)}Same?"
        "<end_of_utterance>\nAssistant:"
    )
    assert [span.first + i for span in spans for i in range(ROWS)] == places(engine, prompt)
    digests = [span.digest for span in spans]
    assert digests[:5] == digests[8:] and len({*digests}) == 8


def test_a_turn_of_text_after_an_image(seeing):
    history = [
        {"role": "system", "content": "Be brief."},
        user(part(64, 32), text("What?")),
        {"role": "assistant", "content": "Noise."},
        {"role": "user", "content": "Why?"},
    ]
    written, prompt, spans = prompted(engine := seeing(LISTS), *history)
    assert written == (
        f"<|im_start|>System: Be brief.<end_of_utterance>\nUser:{shown(*WIDE)}What?"
        "<end_of_utterance>\nAssistant: Noise.<end_of_utterance>\nUser: Why?<end_of_utterance>\n"
        "Assistant:"
    )
    assert [span.first + i for span in spans for i in range(ROWS)] == places(engine, prompt)
    written, _, spans = prompted(engine, *history[2:])
    assert "Why?" in written and not spans


@pytest.mark.parametrize("template", [LISTS, BOTH], ids=["lists", "both"])
def test_a_typed_placeholder_is_text(seeing, template):
    """It gets the token's own embedding, wherever it is typed: before, behind, joined of parts."""
    engine = seeing(template)
    typed = [text("<image> <ima"), text(f"ge> {FAKE}"), part(64, 32), text("<image><image>")]
    system = {"role": "system", "content": "Not <image>."}
    written, prompt, spans = prompted(engine, system, user(*typed))
    content = f"<image> <image> {FAKE}{shown(*WIDE)}<image><image>"
    assert content in written and "Not <image>." in written
    at = places(engine, prompt)
    assert len(at) == 1 + 2 + 3 * ROWS + 2
    assert [span.first + i for span in spans for i in range(ROWS)] == at[3:-2]


def test_a_typed_placeholder_elsewhere(seeing):
    tools = [{"type": "function", "function": {"name": "f", "description": "of <image>"}}]
    _, prompt, spans = prompted(engine := seeing(), user(part(64, 32)), tools=tools)
    assert [s.first for s in spans] == places(engine, prompt)[1::ROWS]
    assert prompted(engine, user(text("<image>")))[2] == []


@pytest.mark.parametrize("template", ["", "<image><image>"])
def test_a_template_with_another_number_of_places(seeing, template):
    with pytest.raises(RequestError, match=r"writes \d places for the 1 images") as e:
        prompted(seeing(BOTH.replace("<image>", template)), user(part(8, 8), text("x")))
    assert (e.value.code, e.value.param) == ("chat_template", "messages")


PLACE = "messages[0].content[0].image_url.url"
PNG = url_of(file_of(picture(4, 4)))


@pytest.mark.parametrize(
    ("url", "reason", "code"),
    [
        ("https://example.org/cat.png", "not fetched from addresses", "unsupported_content"),
        ("file:///etc/passwd", "not fetched from addresses", "unsupported_content"),
        ("/etc/passwd", "is '/etc/passwd'; an image is sent as a data: URL", "invalid_image"),
        ("", "an image is sent as a data: URL", "invalid_image"),
        ("data:image/png,abc", "an image is sent as a data: URL", "invalid_image"),
        ("data:image/png;base64", "an image is sent as a data: URL", "invalid_image"),
        (PNG[:60] + "!" + PNG[61:], "is not base64: character 38 of it is wrong", "invalid_image"),
        ("data:;base64,abcde", "is not base64: it ends too early", "invalid_image"),
        ("data:;base64,", "has an empty image", "invalid_image"),
        ("data:;base64,aGk=", "is none of JPEG, PNG, WebP and GIF", "invalid_image"),
        (url_of(file_of(picture(40, 40))[:900]), "cannot be read", "invalid_image"),
        (url_of(file_of(picture(8, 8), "BMP")), "is none of JPEG", "invalid_image"),
        (url_of(bytes(21 << 20)), "20 MiB", "invalid_image"),
    ],
)
def test_what_is_no_image_is_refused_with_its_place(seeing, url, reason, code):
    with pytest.raises(RequestError, match=reason) as e:
        prompted(seeing(), user({"type": "image_url", "image_url": {"url": url}}))
    assert (e.value.param, e.value.code) == (PLACE, code)
    assert len(str(e.value)) < 300


@pytest.mark.parametrize(
    ("message", "param", "reason"),
    [
        (user({"type": "image_url"}), "image_url", "takes {"),
        (user({"type": "image_url", "image_url": PNG}), "image_url", "takes {"),
        (user({"type": "image_url", "image_url": {"url": None}}), "image_url", "takes {"),
        (user({"type": "image_url", "image_url": {"url": PNG, "detail": "x"}}),
         "image_url.detail", "takes auto, low, high or original"),
        (user({"type": "image"}), "type", "reads text and images"),
        (user({"type": "input_audio", "input_audio": {}}), "type", "'input_audio'"),
        (user(part(4, 4)) | {"role": "assistant"}, "", "messages of the user and in results"),
        (user(*[part(4, 4)] * 33), "", "more than 32 images"),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_refused(seeing, message, param, reason):
    with pytest.raises(RequestError, match=reason) as e:
        prompted(seeing(), message)
    at = 32 if "32" in reason else 0
    assert e.value.param == f"messages[0].content[{at}].{param}".rstrip(".")


def test_base64_of_mail_and_without_padding(seeing):
    file = file_of(picture(64, 32))
    broken = url_of(file)[:80] + "\r\n" + url_of(file)[80:].rstrip("=")
    same = [{"type": "image_url", "image_url": {"url": u}} for u in (url_of(file), broken)]
    spans = prompted(seeing(), user(*same))[2]
    assert [s.digest for s in spans[:3]] == [s.digest for s in spans[3:]]


def test_all_choices_get_the_images(seeing):
    engine = seeing()
    prompted(engine, user(part(64, 64)), n=3)
    one, *rest = core_of(engine.loaded).spans
    assert len(rest) == 2 and len(one) == 5 and all(spans == one for spans in rest)


def test_a_low_detail_takes_fewer_rows(seeing):
    full, low = part(64, 64), part(64, 64)
    low["image_url"]["detail"] = "low"
    spans = prompted(seeing(), user(full, low))[2]
    assert [s.digest for s in spans] == [s.digest for s in [*spans[:5], spans[4]]]


@pytest.mark.parametrize(
    ("detail", "names"),
    [("high", ["messages.content.image_url.detail"]), ("low", []), ("auto", [])],
)
def test_a_detail_without_effect_is_listed(seeing, detail, names):
    from wherry.runtime.host.request import HostRequest
    from wherry.runtime.host.sinks import BlockingSink

    engine, image, sink = seeing(), part(8, 8), BlockingSink()
    image["image_url"]["detail"] = detail
    running = engine.loaded.start(HostRequest("chat", {"messages": [user(image)]}), sink)
    while not running.done:
        running.take(sink.take())
    assert running.opened["ignored"] == names


def test_images_count_for_the_context(seeing):
    engine = seeing(context=64)
    with pytest.raises(RequestError, match="maximum context length is 64") as e:
        prompted(engine, user(*[part(64, 64)] * 9))
    assert e.value.code == "context_length_exceeded"
    old, new = user(part(64, 64, 1), text("old")), user(part(64, 64, 2), text("new"))
    history = [old, {"role": "assistant", "content": "Yes."}, new]
    with pytest.raises(RequestError, match="truncation"):
        prompted(engine, *history)
    written, _, spans = prompted(engine, *history, truncation="auto")
    assert "old" not in written
    assert spans == prompted(engine, new)[2]


def test_tokens_of_a_chat(seeing):
    engine = seeing()
    _, prompt, _ = prompted(engine, message := user(part(64, 64), text("What?")))
    assert engine.loaded.prompt({"messages": [message]}, Caller()) == prompt


def test_a_continued_message(seeing):
    engine = seeing(LISTS)
    said = {"role": "assistant", "content": "It is <image>"}
    written, _, spans = prompted(engine, user(part(64, 32)), said, continue_final_message=True)
    assert written.endswith("Assistant: It is <image>") and len(spans) == 3


def test_a_model_of_text_whose_template_takes_lists(make):
    engine = MLCEngine.of(make(template=LISTS))
    system = {"role": "system", "content": "Be brief."}
    engine.chat.completions.create(messages=[system, user(text("Hi"))])
    prompt, _ = core_of(engine.loaded).added[-1]
    assert engine.loaded.tokenizer.decode(prompt, skip_special_tokens=False) == (
        "<|im_start|>System: Be brief.<end_of_utterance>\nUser: Hi<end_of_utterance>\nAssistant:"
    )


def test_a_model_of_text_refuses_images(make):
    with pytest.raises(RequestError, match="this model reads text") as e:
        MLCEngine.of(make()).chat.completions.create(messages=[user(part(8, 8))])
    assert e.value.code == "unsupported_content"


def test_openais_client(seeing):
    engine = seeing()
    with (
        live(engine.loaded) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        create, message = client.chat.completions.create, user(part(64, 64), text("What?"))
        answer = create(model="seeing", messages=[message])
        assert answer.choices[0].message.content == "Yes."
        chunks = [*create(model="seeing", messages=[message], stream=True)]
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == "Yes."
        wrong = {"type": "image_url", "image_url": {"url": "data:;base64,aGk="}}
        with pytest.raises(openai.BadRequestError) as e:
            create(model="seeing", messages=[user(wrong)])
        assert (e.value.code, e.value.param) == ("invalid_image", PLACE)
    assert len(core_of(engine.loaded).spans) == 2


def test_tokenize_counts_images(seeing):
    engine = seeing()
    client = TestClient(create_app(engine), base_url="http://localhost")
    messages = [user(part(64, 64), text("What?"))]
    _, prompt, _ = prompted(engine, *messages)
    assert client.post("/tokenize", json={"messages": messages}).json()["count"] == len(prompt)
