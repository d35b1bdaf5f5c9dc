"""The error of one request, with what OpenAI's error object carries."""

from __future__ import annotations

from wherry.errors import ResourceError, UsageError


class RequestError(UsageError):
    """A request cannot be served as it stands; the engine goes on.

    Attributes:
        param: the field at fault, "messages[0].content"; None if there is no single one.
        code: a name for programs, "context_length_exceeded"; None if there is none.
    """

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class BusyError(ResourceError):
    """The queue is full; the same request may be served a little later.

    Attributes:
        retry_after: seconds after which there may be room; None: nobody knows.
    """

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
