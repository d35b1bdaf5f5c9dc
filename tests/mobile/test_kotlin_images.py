"""Images in the Kotlin library: its answers are those of Python's engine."""

from __future__ import annotations

import json
import shutil

import pytest

from wherry.runtime import MLCEngine

from ..runtime.vision_model import file_of, picture, text, url_of
from ..support.seeing_folder import seeing_folder
from ..support.tiny_models import compiled
from .conftest import RUNTIME, java_libraries, java_on

pytestmark = [pytest.mark.cpu, pytest.mark.mobile]
SHORT = {"max_tokens": 6, "temperature": 0}  # as kotlin/Checks.kt has it


def test_answers_are_python_s(jars, classes, bridge, tmp_path):
    folder = tmp_path / "model"
    (tmp_path / "smolvlm").mkdir()
    shutil.copytree(compiled(seeing_folder(tmp_path / "smolvlm")), folder)
    files = [file_of(picture(40, 30), "JPEG"), file_of(picture(64, 64, 1))]
    for name, file in zip(("jpeg", "png"), files, strict=True):
        (folder / f"picture.{name}").write_bytes(file)
    options = json.dumps({"runtime": str(RUNTIME), "threads": 1})
    words = ("ChecksKt", folder, options, f"images:{folder}")
    got = java_on(java_libraries(bridge), f"{classes}:{jars}", *words)["images"]
    parts = [{"type": "image_url", "image_url": {"url": url_of(file)}} for file in files]
    messages = [{"role": "user", "content": [*parts, text("What is it?")]}]
    with MLCEngine(folder, threads=1) as engine:

        def answer() -> str:
            reply = engine.chat.completions.create(messages=messages, **SHORT)
            return reply.choices[0].message.content

        first = answer()
        messages += [
            {"role": "assistant", "content": first},
            {"role": "user", "content": "And now?"},
        ]
        assert got == [first, first, answer(), "What is it?"]
