"""The services that C++ asks for: the tokenizer, the chat templates, the grammars, the engine."""

from __future__ import annotations

import ctypes
import json
import threading
from array import array
from collections.abc import Callable, Sequence
from ctypes import string_at
from typing import Any

from wherry.errors import UsageError, WherryError

from ..caller import Abandoned, Caller
from ..core import host_abi as abi
from ..core.interface import Core
from ..errors import ContextOverflow, RequestError
from ..text.chat_template import ChatTemplate
from ..text.tokenizer import Tokenizer, TooManyTokens
from .image_files import ImageError, decoded

_INVALID, _INTERNAL = -1, -6  # statuses of wherry.h


class Services:
    """The C struct of a model's services.

    Every service catches what it raises. `raised` keeps the exception for the caller in Python, and
    C++ gets a status.

    Args:
        give: `wherry_host_give`.
        tokenizer: the model's tokenizer.
        templates: the model's chat templates; the second one is for chats with tools.
        core: the engine.
        constrain: begins to make the grammar of a request (id, requirements).
    """

    def __init__(
        self,
        give: Callable[[int, bytes, int], None],
        tokenizer: Tokenizer,
        templates: Sequence[ChatTemplate],
        core: Core,
        constrain: Callable[[int, Any], None],
    ) -> None:
        self._give = give
        self._tokenizer = tokenizer
        self._templates = templates
        self._core = core
        self._here = threading.local()
        # refers to the callbacks, which must live as long as C++ calls them
        self.record = abi.Services(
            ctypes.sizeof(abi.Services),
            None,
            abi.ENCODE(self._guarded(self._encode)),
            abi.ENCODE_PAIR(self._guarded(self._encode_pair)),
            abi.DECODE(self._guarded(self._decode)),
            abi.ID_OF(self._id_of),
            abi.TOKEN(self._token),
            abi.DECODE_IMAGE(self._decode_image),
            abi.RENDER(self._guarded(self._render)),
            abi.CONSTRAIN(
                lambda _, id, address, n: constrain(id, json.loads(string_at(address, n)))
            ),
            abi.ADD(self._add),
            abi.ABORT(lambda _, id: core.abort(id)),
            abi.WAKE(lambda _: core.wake()),
        )

    def begin(self, caller: Caller, on_add: Callable[[], None] = lambda: None) -> None:
        """Set the client of the calls that C++ makes on this thread from now on.

        Args:
            caller: the client.
            on_add: called before the engine gets a request.
        """
        self._here.caller, self._here.on_add, self._here.raised = caller, on_add, None

    def close(self) -> None:
        """Free the callbacks, which refer to this object; C++ must not call any more."""
        del self.record

    @property
    def raised(self) -> BaseException | None:
        """Return the exception of a service on this thread since `begin`."""
        return getattr(self._here, "raised", None)

    @property
    def _caller(self) -> Caller:
        return getattr(self._here, "caller", None) or Caller()

    def _guarded(self, service: Callable[..., int]) -> Callable[..., int]:
        def call(_: int, *arguments: Any) -> int:
            try:
                return service(*arguments)
            except Abandoned as e:
                self._here.raised = e
                return abi.GONE
            # Nothing may leave a C callback: `raised` keeps it, and Host raises it again.
            except Exception as e:
                self._here.raised = e
                return self._say(arguments[-1], str(e).encode(errors="replace"), abi.FAILED)

        return call

    def _say(self, out: int, data: bytes, status: int = abi.OK) -> int:
        self._give(out, data, len(data))
        return status

    def _encode(self, address: int, n: int, special: int, limit: int, out: int) -> int:
        text, add = _text(address, n), bool(special)
        if limit < 0:
            ids = self._tokenizer.encode(text, add_special_tokens=add)
            return self._say(out, array("i", ids).tobytes())
        self._caller.check()
        try:
            ids = self._tokenizer.encode_at_most(text, limit, self._caller, add_special_tokens=add)
        except TooManyTokens as e:
            return self._say(out, array("q", [e.at_least]).tobytes(), abi.TOO_MANY)
        return self._say(out, array("i", ids).tobytes())

    def _encode_pair(self, first: int, n: int, second: int, m: int, out: int) -> int:
        pair = (_text(first, n), _text(second, m))
        (encoded,) = self._tokenizer.backend.encode_batch([pair])
        places = [-1 if place is None else place for place in encoded.sequence_ids]
        return self._say(out, array("i", [*encoded.ids, *encoded.type_ids, *places]).tobytes())

    def _decode(self, ids: Any, n: int, skip: int, out: int) -> int:
        text = self._tokenizer.decode(ids[:n], skip_special_tokens=bool(skip))
        return self._say(out, text.encode(errors="replace"))

    def _id_of(self, _: int, address: int, n: int) -> int:
        token = self._tokenizer.backend.token_to_id(_text(address, n))
        return -1 if token is None else token

    def _token(self, _: int, token: int, piece: int, name: int) -> int:
        text = self._tokenizer.backend.id_to_token(token)
        if text is None:
            return abi.UNKNOWN
        self._say(piece, self._tokenizer.piece(token))
        self._say(name, text.encode(errors="replace"))
        return abi.SPECIAL if token in self._tokenizer.special_ids else abi.TEXT

    def _decode_image(self, _: int, file: int, n: int, rgb: int, width: Any, height: Any) -> int:
        try:
            self._caller.check()
            with decoded(string_at(file, n)) as image:
                width[0], height[0] = image.size
                for strip in image.strips():
                    self._say(rgb, strip)
        except Abandoned as e:
            self._here.raised = e
            return abi.GONE
        except ImageError as e:
            return self._say(rgb, str(e).encode(errors="replace"), abi.REFUSED)
        except Exception as e:  # nothing may leave a C callback, as in `_guarded`
            self._here.raised = e
            return abi.FAILED
        return abi.OK

    def _render(self, which: int, address: int, n: int, out: int) -> int:
        given = json.loads(string_at(address, n))
        try:
            text = self._templates[which].render(caller=self._caller, **given)
        except RequestError as e:
            return self._say(out, str(e).encode(errors="replace"), abi.REFUSED)
        return self._say(out, text.encode(errors="replace"))

    def _add(self, _: int, id: int, prompt: Any, n: int, params: Any, out: int) -> int:
        try:
            self._here.on_add()
            self._core.add_record(id, prompt, n, params)
        except Exception as e:  # nothing may leave a C callback, as in `_guarded`
            self._here.raised = e
            status = _INVALID if isinstance(e, UsageError) else _INTERNAL
            return self._say(out, str(e).encode(errors="replace"), status)
        return 0


def _text(address: int, n: int) -> str:
    return string_at(address, n).decode(errors="replace") if n else ""


def error_of(reported: dict[str, Any]) -> WherryError:
    """Return the error in the JSON that C++ reports."""
    error = reported["error"]
    if error["type"] != "invalid_request_error":
        return WherryError(error["message"])
    if overflow := reported.get("overflow"):
        context, prompt, output = overflow
        return ContextOverflow(
            error["message"], param=error["param"], context=context, prompt=prompt, output=output
        )
    return RequestError(error["message"], param=error["param"], code=error["code"])
