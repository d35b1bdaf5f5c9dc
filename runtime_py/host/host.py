"""A model whose requests C++ serves."""

from __future__ import annotations

import json
from collections.abc import Callable
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_int32,
    c_size_t,
    c_void_p,
    create_string_buffer,
    string_at,
)
from typing import Any

from wherry.errors import UsageError, WherryError

from ..caller import Caller
from ..core import host_abi as abi
from ..core.interface import Core, OutputGrammar, Records
from ..text.chat_template import ChatTemplate
from ..text.tokenizer import Tokenizer
from .request import HostRequest, body_of
from .running import Message
from .services import Services, error_of

Constrain = Callable[[int, Any], None]


class Host:
    """A model's requests in C++.

    Args:
        model: the description of the model for `wherry_host_open`.
        tokenizer: its tokenizer.
        template: its chat template; None: it has none.
        core: the engine.
        constrain: begins to make the grammar of a request (id, requirements); `constrained` or
            `refuse` reports the end.

    Raises:
        WherryError: the description is incomplete.
    """

    def __init__(
        self,
        model: dict[str, Any],
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        core: Core,
        constrain: Constrain,
    ) -> None:
        self._library = library = abi.open_host()
        templates = [t for t in (template, template.for_tools if template else None) if t]
        self._services = Services(library.wherry_host_give, tokenizer, templates, core, constrain)
        listed = [{"source": t.source, "variables": sorted(t.variables)} for t in templates]
        data = json.dumps({**model, "templates": listed}).encode()
        self._handle = c_void_p()
        # by the requests' ids, until C++ releases them
        self._grammars: dict[int, OutputGrammar] = {}
        self._mask = abi.MASK(self._mask_of)
        self._release = abi.RELEASE(lambda id: self._grammars.pop(id, None) and None)
        self._check(
            library.wherry_host_open(
                data, len(data), byref(self._services.record), byref(self._handle)
            )
        )
        self._messages, self._count = c_void_p(), c_size_t()

    def _check(self, status: int) -> None:
        """Raise the error of a call on this thread."""
        if not status:
            return
        if raised := self._services.raised:
            raise raised
        raise error_of(json.loads(self._library.wherry_host_last_error()))

    def start(
        self, id: int, request: HostRequest, caller: Caller, on_add: Callable[[], None]
    ) -> BaseException | None:
        """Plan a request on this thread and submit it to the core.

        Args:
            id: identifies the request.
            request: the request.
            caller: the client.
            on_add: called before the core gets a part of it, which may block.

        Returns:
            The error of Python by which the core did not take all of it, which then ends; or None.

        Raises:
            Abandoned: the client has gone.
            RequestError: the request cannot be served.
            WherryError: the core refuses it.
        """
        data = request.body or body_of(request.fields)
        options = json.dumps({"task": request.task, **request.options}).encode()
        self._services.begin(caller, on_add)
        self._check(self._library.wherry_host_start(self._handle, id, data, len(data), options))
        return self._services.raised

    def prompt(self, fields: Any, caller: Caller, *, add_special_tokens: bool = False) -> list[int]:
        """Return the tokens of a chat's messages in the model's template; errors as in `start`."""
        data, ids, n = body_of(fields), POINTER(c_int32)(), c_size_t()
        self._services.begin(caller)
        self._check(
            self._library.wherry_host_prompt(
                self._handle, data, len(data), add_special_tokens, byref(ids), byref(n)
            )
        )
        return ids[: n.value]

    def totals(self, id: int) -> bytes | None:
        """Return the C struct of a request's totals so far; None if it is unknown or has ended."""
        record = create_string_buffer(abi.TOTALS.size)
        return None if self._library.wherry_host_totals_of(self._handle, id, record) else record.raw

    def abort(self, id: int) -> None:
        """Abort a request; one that has ended is ignored."""
        self._library.wherry_host_abort(self._handle, id)

    def constrained(self, id: int, grammar: OutputGrammar) -> None:
        """Report the grammar of a request, which is then submitted to the core."""
        self._grammars[id] = grammar
        self._report(id, None)

    def refuse(self, id: int, error: WherryError) -> None:
        """Report that a request has no grammar."""
        self._report(id, json.dumps(error_json(error)).encode())

    def _report(self, id: int, error: bytes | None) -> None:
        self._services.begin(Caller())
        self._library.wherry_host_constrained(
            self._handle, id, self._mask, self._release, id, error
        )

    def _mask_of(self, id: int, stops: Any, n: int, out: Any) -> int:
        try:
            out[0] = self._grammars[id].mask(stops[:n])
        except WherryError:
            return 1
        return 0

    def hear(self, records: Records) -> list[tuple[int, Message]]:
        """Return the messages, by request, that follow from events of the core.

        Only one thread may call this.
        """
        self._services.begin(Caller())
        self._library.wherry_host_hear(
            self._handle,
            records.events,
            records.n,
            c_char_p(records.error),
            byref(self._messages),
            byref(self._count),
        )
        if not self._count.value:
            return []
        raw = string_at(self._messages.value or 0, self._count.value * abi.MESSAGE.size)
        return [
            (id, Message(kind, string_at(address, size), totals))
            for id, kind, address, size, totals in abi.MESSAGE.iter_unpack(raw)
        ]

    def close(self) -> None:
        """Free the model; no request may run, and no call may follow."""
        if self._handle:
            self._library.wherry_host_close(self._handle)
            self._handle = c_void_p()
            # what callbacks refer to is freed now, and not by a collection at some time
            self._services.close()
            del self._services, self._mask


def error_json(error: WherryError) -> dict[str, Any]:
    """Return an error in OpenAI's shape."""
    own = isinstance(error, UsageError)
    return {
        "error": {
            "message": str(error),
            "type": "invalid_request_error" if own else "server_error",
            "param": getattr(error, "param", None),
            "code": getattr(error, "code", None),
        }
    }
