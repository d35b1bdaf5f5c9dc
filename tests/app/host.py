"""libwherry_host over a compiled folder, with Python's libraries as its services.

The engine's events go from libwherry to libwherry_host as they are; Python sees whole chunks.
"""

from __future__ import annotations

import ctypes
import json
import queue
import threading
from array import array
from collections import defaultdict
from ctypes import (
    CFUNCTYPE,
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint64,
    c_void_p,
    string_at,
)
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wherry.artifact.head import read_head
from wherry.errors import UsageError, WherryError
from wherry.runtime.core.library import open_core
from wherry.runtime.core.native import EVENT_BATCH, NativeCore
from wherry.runtime.core.records import Event, Mask, Params
from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.compiler import GrammarCompiler
from wherry.runtime.grammar.constraint import Constraint
from wherry.runtime.grammar.fields import constraint_of
from wherry.runtime.load import loading
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.shapes.tools import Function, InputFunction, InputGrammar
from wherry.runtime.tools.enforce import Enforcement
from wherry.runtime.tools.families import named
from wherry.runtime.tools.reasoning import Thoughts

from .programs import BUILD

OK, REFUSED, _GONE, FAILED = range(4)
OPENED, CHUNK, LAST = range(3)
_INTERNAL = -6  # the status WHERRY_INTERNAL of wherry.h
_Text = c_void_p  # a text that is no C string, because it may contain zero bytes


class Totals(ctypes.Structure):
    """The C struct `wherry_host_totals`."""

    _fields_ = (
        *((name, c_int64) for name in "prompt sampled cached drafted accepted reasoning".split()),
        *((name, c_double) for name in "queue prefill decode".split()),
    )


class Message(ctypes.Structure):
    """The C struct `wherry_host_message`."""

    _fields_ = (
        ("id", c_int64),
        ("kind", c_int32),
        ("json", _Text),
        ("n", c_size_t),
        ("totals", Totals),
    )


_ENCODE = CFUNCTYPE(c_int, c_void_p, _Text, c_size_t, c_int, c_void_p)
_ENCODE_PAIR = CFUNCTYPE(c_int, c_void_p, _Text, c_size_t, _Text, c_size_t, c_void_p)
_DECODE = CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, c_int, c_void_p)
_ID_OF = CFUNCTYPE(c_int64, c_void_p, _Text, c_size_t)
_TOKEN = CFUNCTYPE(c_int, c_void_p, c_int32, c_void_p, c_void_p)
_RENDER = CFUNCTYPE(c_int, c_void_p, c_int, _Text, c_size_t, c_void_p)
_CONSTRAIN = CFUNCTYPE(None, c_void_p, c_int64, _Text, c_size_t)
_ADD = CFUNCTYPE(c_int, c_void_p, c_uint64, POINTER(c_int32), c_size_t, POINTER(Params), c_void_p)
_ABORT = CFUNCTYPE(None, c_void_p, c_uint64)
_WAKE = CFUNCTYPE(None, c_void_p)
_MASK = CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, POINTER(Mask))
_RELEASE = CFUNCTYPE(None, c_void_p)


class Services(ctypes.Structure):
    """The C struct `wherry_host_services`."""

    _fields_ = (
        ("size", c_size_t),
        ("context", c_void_p),
        ("encode", _ENCODE),
        ("encode_pair", _ENCODE_PAIR),
        ("decode", _DECODE),
        ("id_of", _ID_OF),
        ("token", _TOKEN),
        ("render", _RENDER),
        ("constrain", _CONSTRAIN),
        ("add", _ADD),
        ("abort", _ABORT),
        ("wake", _WAKE),
    )


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(BUILD / "libwherry_host.so"))
    library.wherry_host_give.argtypes = (c_void_p, c_char_p, c_size_t)
    library.wherry_host_last_error.restype = c_char_p
    library.wherry_host_open.argtypes = (c_char_p, c_size_t, POINTER(Services), POINTER(c_void_p))
    library.wherry_host_start.argtypes = (c_void_p, c_int64, c_char_p, c_size_t, c_char_p)
    library.wherry_host_abort.argtypes = (c_void_p, c_int64)
    library.wherry_host_constrained.argtypes = (
        *(c_void_p, c_int64, _MASK, _RELEASE, c_void_p, c_char_p),
    )
    library.wherry_host_hear.argtypes = (
        *(c_void_p, POINTER(Event), c_size_t, c_char_p),
        *(POINTER(POINTER(Message)), POINTER(c_size_t)),
    )
    library.wherry_host_close.argtypes = (c_void_p,)
    return library


def error_json(error: WherryError) -> bytes:
    """An error in the shape of OpenAI's."""
    own = isinstance(error, UsageError)
    fields = {
        "message": str(error),
        "type": "invalid_request_error" if own else "server_error",
        "param": getattr(error, "param", None),
        "code": getattr(error, "code", None),
    }
    return json.dumps({"error": fields}).encode()


class Host:
    """A model that answers through libwherry_host; the interface is that of `App`."""

    def __init__(self, folder: Path, tool_format: str = "") -> None:
        manifest = loading.verified(folder)
        config = loading.engine_config(manifest, {}, "cpu", None)
        core = loading.native_core(folder, manifest, "cpu", {"threads": 1}, config)
        assert isinstance(core, NativeCore)
        self._core, self._api = core, open_core()
        self._files = SideFiles.read(folder)
        self._tokenizer = self._files.tokenizer
        self._grammars: GrammarCompiler | None = None
        self._makers: dict[int, Any] = {}  # grammars that C++ refers to
        self._messages: defaultdict[int, queue.SimpleQueue[tuple[int, Any]]] = defaultdict(
            queue.SimpleQueue
        )
        self._count = 0
        self.added = 0  # jobs that were given to the engine
        self.refused_add = 0  # the job, counted from 1, that the engine refuses; 0: none
        self._library = _library()
        self._services = self._brought()
        model = self._model(folder, tool_format)
        data = json.dumps(model).encode()
        self._handle = c_void_p()
        status = self._library.wherry_host_open(
            data, len(data), byref(self._services), byref(self._handle)
        )
        assert status == 0, self._library.wherry_host_last_error()
        self._vocab_size = model["vocab_size"]
        core.start()
        self._over = False
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _model(self, folder: Path, tool_format: str) -> dict[str, Any]:
        tokenizer, metadata, stats = self._tokenizer, self._core.metadata, self._core.stats()
        of_bytes = tokenizer.token_bytes
        templates = []
        if self._files.template is not None:
            templates = [self._files.template, self._files.template.for_tools]
        self._templates = [template for template in templates if template is not None]
        context = int(metadata["context"])
        if metadata.get("groups") != []:
            context = min(context, stats.pages_total * stats.page_size)
        head = read_head(folder)
        entries = metadata.get("entries", ["forward"])
        return {
            "name": loading.verified(folder).name,
            "context": context,
            "vocab_size": metadata.get("vocab_size", tokenizer.vocab_size),
            "tokens": tokenizer.vocab_size,
            "largest_id": max(tokenizer.backend.get_vocab(with_added_tokens=True).values()),
            "byte_rules": of_bytes and {"each_byte": of_bytes.each_byte, "strip": of_bytes.strip},
            "eos_ids": list(tokenizer.eos_ids),
            "defaults": dict(self._files.defaults),
            "decoder_start": list(self._files.decoder_start) if "encode" in entries else [],
            "head": asdict(head) if head else {},
            "embedding_size": metadata.get("embedding_size", 0),
            "writes_text": "forward" in entries,
            "tool_format": tool_format,
            "adapts": True,
            "templates": [
                {"source": t.source, "variables": sorted(t.variables)} for t in self._templates
            ],
        }

    def _brought(self) -> Services:
        give, api, tokenizer = self._library.wherry_host_give, self._api, self._tokenizer
        engine = self._core._engine

        def text(address: int, n: int) -> str:
            return string_at(address, n).decode(errors="replace")

        def numbers(out: int, ids: list[int]) -> int:
            data = array("i", ids).tobytes()
            give(out, data, len(data))
            return OK

        def said(out: int, words: str) -> int:
            data = words.encode()
            give(out, data, len(data))
            return OK

        def encode(_: int, address: int, n: int, special: int, out: int) -> int:
            ids = tokenizer.encode(text(address, n), add_special_tokens=bool(special))
            return numbers(out, ids)

        def encode_pair(_: int, a: int, n: int, b: int, m: int, out: int) -> int:
            (made,) = tokenizer.backend.encode_batch([(text(a, n), text(b, m))])
            places = [-1 if place is None else place for place in made.sequence_ids]
            return numbers(out, [*made.ids, *made.type_ids, *places])

        def decode(_: int, ids: Any, n: int, skip: int, out: int) -> int:
            return said(out, tokenizer.decode(ids[:n], skip_special_tokens=bool(skip)))

        def id_of(_: int, address: int, n: int) -> int:
            found = tokenizer.backend.token_to_id(text(address, n))
            return -1 if found is None else found

        def token(_: int, token: int, piece: int, name: int) -> int:
            found = tokenizer.backend.id_to_token(token)
            if found is None:
                return 0
            data = tokenizer.piece(token)
            give(piece, data, len(data))
            said(name, found)
            return 2 if token in tokenizer.special_ids else 1

        def render(_: int, which: int, address: int, n: int, out: int) -> int:
            given = json.loads(string_at(address, n))
            try:
                return said(out, self._templates[which].render(**given))
            except RequestError as e:
                said(out, str(e))
                return REFUSED

        def constrain(_: int, request: int, address: int, n: int) -> None:
            given = json.loads(string_at(address, n))
            threading.Thread(target=self._compile, args=(request, given)).start()

        def add(_: int, request: int, prompt: Any, n: int, params: Any, out: int) -> int:
            self.added += 1
            if self.added == self.refused_add:
                said(out, "The engine takes no more")
                return _INTERNAL
            status: int = api.wherry_engine_add(engine, request, prompt, n, params)
            if status:
                said(out, (api.wherry_last_error() or b"").decode())
            return status

        def abort(_: int, request: int) -> None:
            api.wherry_engine_abort(engine, request)

        def wake(_: int) -> None:
            api.wherry_engine_wake(engine)

        return Services(
            ctypes.sizeof(Services),
            None,
            _ENCODE(encode),
            _ENCODE_PAIR(encode_pair),
            _DECODE(decode),
            _ID_OF(id_of),
            _TOKEN(token),
            _RENDER(render),
            _CONSTRAIN(constrain),
            _ADD(add),
            _ABORT(abort),
            _WAKE(wake),
        )

    def _compile(self, request: int, given: dict[str, Any]) -> None:
        try:
            if self._grammars is None:
                self._grammars = GrammarCompiler.of(self._tokenizer, self._vocab_size)
            grammar = self._grammars.begin(self._constraint(given)).result()
        except WherryError as e:
            nothing = _MASK(lambda *_: 1), _RELEASE(lambda _: None)
            self._library.wherry_host_constrained(
                self._handle, request, *nothing, None, error_json(e)
            )
            return

        def mask(_: int, stops: Any, n: int, out: Any) -> int:
            out[0] = grammar.mask(stops[:n])
            return 0

        maker = _MASK(mask), _RELEASE(lambda _: None)
        self._makers[request] = maker
        self._library.wherry_host_constrained(self._handle, request, *maker, None, None)

    def _constraint(self, given: dict[str, Any]) -> Constraint:
        base = constraint_of(given["fields"], self._tokenizer.is_special)
        chat = given["chat"]
        if chat is None:
            assert base is not None
            return base
        thoughts = Thoughts(*chat["thoughts"]) if chat["thoughts"] else None
        family = named(chat["family"]) if chat["family"] else None
        special = self._tokenizer.special_id
        made = Enforcement(family, thoughts, opened=chat["opened"], special=special)
        tools = [_function(tool) for tool in chat["tools"]]
        if chat["must"]:
            return made.calls(tools, several=chat["several"])
        if base is not None:
            return made.held(base, tools, several=chat["several"])
        return made.text_or_calls(tools, several=chat["several"])

    def _hear(self) -> None:
        events, count = (Event * EVENT_BATCH)(), c_size_t()
        messages, n = POINTER(Message)(), c_size_t()
        api, library = self._api, self._library
        while not self._over:
            api.wherry_engine_wait(self._core._engine, events, EVENT_BATCH, 1000, byref(count))
            library.wherry_host_hear(
                *(self._handle, events, count, api.wherry_last_error()),
                *(byref(messages), byref(n)),
            )
            for i in range(n.value):
                message = messages[i]
                data = json.loads(string_at(message.json, message.n))
                self._messages[message.id].put((message.kind, data))

    def start(self, **fields: Any) -> int:
        """Begin a request; the number under which its JSON comes."""
        self._count += 1
        data = json.dumps(fields).encode()
        status = self._library.wherry_host_start(self._handle, self._count, data, len(data), None)
        if status:
            error = json.loads(self._library.wherry_host_last_error())
            self._messages[self._count].put((LAST, error))
        return self._count

    def all(self, number: int) -> list[Any]:
        """All that a request has given."""
        found = []
        while True:
            kind, data = self._messages[number].get(timeout=60)
            if kind != OPENED:
                found.append(data)
            if kind == LAST:
                return found

    def about(self, **fields: Any) -> Any:
        """How a request was understood."""
        number = self.start(**fields)
        kind, data = self._messages[number].get(timeout=60)
        assert kind == OPENED, data
        self.all(number)
        return data

    def ask(self, **fields: Any) -> Any:
        """The last JSON of a request."""
        return self.all(self.start(**fields))[-1]

    def close(self) -> None:
        """Free the model."""
        self._over = True
        self._core.wake()
        self._thread.join()
        self._library.wherry_host_close(self._handle)
        self._core.close()
        if self._grammars:
            self._grammars.close()


def _function(tool: dict[str, Any]) -> Function:
    fields = {name: tool[name] for name in ("name", "parameters", "strict")}
    if tool["input"] is None:
        return Function(**fields)
    syntax, definition = tool["input"]
    return InputFunction(held=InputGrammar(syntax=syntax, definition=definition), **fields)
