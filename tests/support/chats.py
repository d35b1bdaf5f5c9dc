"""The prompts of chats, as the C++ layer makes them with jinja2."""

from __future__ import annotations

from contextlib import contextmanager

from wherry.runtime.host.request import HostRequest, checked
from wherry.runtime.host.sinks import BlockingSink
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from ..runtime import small_tokenizers
from ..runtime.fake_core import FakeCore, saying


@contextmanager
def chats(template: ChatTemplate, *, adapts: bool = True, tool_format: str | None = None):
    """A function from the fields of a chat to its prompt's text and how it was adapted."""
    tokenizer = Tokenizer(small_tokenizers.byte_level(), {"eos_token": "</s>"})
    core = FakeCore(saying([], tokenizer.eos_ids[0]), context=1_000_000, pages=100_000)
    files = SideFiles(tokenizer, template)
    model = LoadedModel("small", core, files, adapt_messages=adapts, tool_format=tool_format)

    def prompt(fields):
        checked("chat", fields)
        sink = BlockingSink()
        running = model.start(HostRequest("chat", fields), sink)
        while not running.done:
            running.take(sink.take())
        text = tokenizer.decode(core.added[-1][0], skip_special_tokens=False)
        return text, tuple(running.opened["adapted"])

    try:
        yield prompt
    finally:
        model.close()
