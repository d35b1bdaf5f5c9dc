"""`wherry run --image` and `/image` in chats, over a model that reads images and is scripted."""

from __future__ import annotations

import contextlib

import pytest
from click.testing import CliRunner
from tests.runtime.conftest import core_of
from tests.runtime.vision_model import file_of, make_seeing, picture

from wherry.cli import options
from wherry.cli.conversation_file import read
from wherry.cli.group import cli
from wherry.errors import UsageError
from wherry.runtime import MLCEngine


@pytest.fixture
def model(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "config.json").write_text("{}")
    (tmp_path / "a.png").write_bytes(file_of(picture(64, 32, 1)))
    (tmp_path / "b.jpg").write_bytes(file_of(picture(32, 64, 2), "JPEG"))
    seeing = make_seeing(context=4096)

    @contextlib.contextmanager
    def opened(name, loading):
        yield MLCEngine.of(seeing)

    monkeypatch.setattr(options, "opened", opened)
    yield seeing
    seeing.close()


def prompt_of(model) -> str:
    prompt, _ = core_of(model).added[-1]
    return model.tokenizer.decode(prompt, skip_special_tokens=False)


def invoked(command, *arguments, lines=()):
    stdin = "".join(f"{line}\n" for line in lines)
    # By the program: a command alone would keep the names of its help option without "-h".
    return CliRunner().invoke(cli, [command, "folder", *arguments], input=stdin)


def test_images_come_before_the_prompt(model):
    done = invoked("run", "--image", "a.png", "--image", "b.jpg", "What is it?")
    assert (done.exit_code, done.stdout.strip()) == (0, "Yes."), done.exception
    assert prompt_of(model).endswith("<fake_token_around_image>What is it?<|assistant|>")
    assert len(core_of(model).spans[-1]) == 2 * 3


def test_a_file_that_is_not_there_ends_it_before_the_load(model, monkeypatch):
    monkeypatch.setattr(options, "opened", lambda *_: pytest.fail("it is loaded"))
    done = invoked("run", "--image", "c.png", "x")
    assert isinstance(done.exception, UsageError)
    assert "c.png: No such file or directory" in str(done.exception)
    done = invoked("run", "--image", "a.png", "--completion", "x")
    assert done.exit_code == 2 and "--completion" in done.stderr


def test_in_a_chat(model, tmp_path):
    lines = ("/image c.png", "/image", "/image a.png", "What?", "Why?", "/regen", "/undo", "/undo",
             "/image b.jpg", "/reset", "No.", f"/save {tmp_path}/talk.json")  # fmt: skip
    done = invoked("chat", lines=lines)
    assert done.exit_code == 0 and done.stdout.split() == ["Yes."] * 4, done.stderr
    assert "c.png: No such file" in done.stderr and "Type: /image cat.jpg" in done.stderr
    assert "[images with the next message: 1]" in done.stderr
    assert [len(spans) for spans in core_of(model).spans] == [3, 3, 3, 0]


def test_a_conversation_with_images_goes_on(model, tmp_path):
    file = tmp_path / "talk.json"
    invoked("chat", "--save", str(file), lines=["/image a.png", "What?"])
    content = read(file).turns[0]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]
    done = invoked("chat", "--save", str(file), lines=["Why?"])
    assert "[2 messages of" in done.stderr
    assert [len(spans) for spans in core_of(model).spans] == [3, 3]


def test_a_file_that_is_no_image(model, tmp_path):
    (tmp_path / "x.png").write_text("no image")
    done = invoked("run", "--image", "x.png", "x")
    assert "the image cannot be read" in str(done.exception)
