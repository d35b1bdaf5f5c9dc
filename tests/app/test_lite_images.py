"""Images in wherry-lite: answers are Python's, over the same compiled model that sees."""

from __future__ import annotations

import pytest

from wherry.runtime import MLCEngine
from wherry.runtime.server.app import create_app

from ..runtime.server.asking import client_of
from ..runtime.vision_model import file_of, part, picture, text, url_of
from ..support.decode import require_decoder
from ..support.seeing_folder import seeing_folder
from ..support.tiny_models import compiled
from .answers import fixed
from .lite import Server, cache, command, lite

pytestmark = pytest.mark.cpu
CHAT = "/v1/chat/completions"
GREEDY = {"max_tokens": 6, "temperature": 0, "logprobs": True, "ignore_eos": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return compiled(seeing_folder(tmp_path_factory.mktemp("smolvlm")))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    cache_folder = tmp_path_factory.mktemp("lite")
    with cache(cache_folder):
        yield cache_folder


@pytest.fixture(scope="module")
def server(folder, place):
    with Server(command("serve", folder), place) as started:
        require_decoder(started.stats()["images"])
        yield started


@pytest.fixture(scope="module")
def python(folder):
    """A client of Python's server."""
    with MLCEngine(folder, threads=1) as engine:
        yield client_of(create_app(engine))


def image(file: bytes) -> dict:
    return {"type": "image_url", "image_url": {"url": url_of(file)}}


CONTENTS = {
    "png": [part(64, 64), text("What is it?")],
    "several": [part(64, 64, 1), text("and"), part(7, 31, 2), text("<image>"), part(90, 20, 3)],
    "jpeg": [text("This: "), image(file_of(picture(50, 40), "JPEG"))],
    "gif": [image(file_of(picture(9, 9), "GIF"))],
}


@pytest.mark.parametrize("name", CONTENTS)
def test_answers_are_python_s(server, python, name):
    request = {**GREEDY, "messages": [{"role": "user", "content": CONTENTS[name]}]}
    status, answer, _ = server.ask("POST", CHAT, request)
    assert status == 200, answer
    assert fixed(answer) == fixed(python.post(CHAT, json=request).json())


REFUSED = {
    "damaged": ([image(b"\x89PNG\r\n\x1a\n")], "invalid_image", "cannot be read"),
    "webp": ([image(file_of(picture(4, 4), "WEBP"))], "invalid_image", "WebP"),
    "address": (
        [{"type": "image_url", "image_url": {"url": "http://localhost/a.png"}}],
        "unsupported_content",
        "not fetched",
    ),
    "too many": ([part(2, 2)] * 33, "invalid_image", "more than 32 images"),
    "too long": ([part(64, 64)] * 20, "context_length_exceeded", "context"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(server, name):
    content, code, words = REFUSED[name]
    request = {**GREEDY, "messages": [{"role": "user", "content": content}]}
    status, answer, _ = server.ask("POST", CHAT, request)
    assert (status, answer["error"]["code"]) == (400, code), answer
    assert words in answer["error"]["message"]


def test_a_model_that_reads_images_says_so(server, python):
    _, listed, _ = server.ask("GET", "/v1/models")
    assert listed["data"][0]["input_modalities"] == ["text", "image"]
    assert python.get("/v1/models").json()["data"][0]["input_modalities"] == ["text", "image"]
    assert server.stats()["images"] is True


def test_a_file_at_the_terminal(folder, place, tmp_path, python):
    file = tmp_path / "picture.png"
    file.write_bytes(file_of(picture(64, 64)))
    options = ("--image", file, "--image", file, "--max-tokens", 6, "--temperature", 0)
    done = lite("run", folder, "What is it?", *options)
    assert done.returncode == 0, done.stderr
    content = [part(64, 64), part(64, 64), text("What is it?")]
    request = {"messages": [{"role": "user", "content": content}], "max_tokens": 6}
    answer = python.post(CHAT, json={**request, "temperature": 0}).json()
    assert done.stdout == answer["choices"][0]["message"]["content"] + "\n"
    missing = lite("run", folder, "What?", "--image", tmp_path / "none.png")
    assert missing.returncode == 2 and "there is no such file" in missing.stderr
