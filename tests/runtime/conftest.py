"""A small model for the tests: a byte-level tokenizer and a core that is scripted."""

from __future__ import annotations

import pytest

from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers
from .fake_core import FakeCore, saying

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def make_model(
    text: str | None = "Hello, wörld 🎉!",
    *,
    template=TEMPLATE,
    defaults=None,
    adapt_messages=True,
    **core,
):
    """A model that says `text` and stops; with None it says "cat" for ever."""
    backend = small_tokenizers.byte_level()
    eos = backend.token_to_id("</s>")
    tokenizer = Tokenizer(backend, {"eos_token": "</s>"})
    if text is None:
        script = saying([], tokenizer.encode(" cat")[0])
    else:
        script = saying(tokenizer.encode(text), eos)
    return LoadedModel(
        "small",
        FakeCore(core.pop("script", script), **core),
        SideFiles(tokenizer, ChatTemplate(template) if template else None, defaults or {}),
        max_batch=16,
        adapt_messages=adapt_messages,
    )


@pytest.fixture
def make():
    """`make_model`, whose models are closed at the end."""
    models = []

    def build(*args, **kwargs):
        models.append(make_model(*args, **kwargs))
        return models[-1]

    yield build
    for model in models:
        model.close()


def core_of(model: LoadedModel) -> FakeCore:
    return model.dispatcher._core
