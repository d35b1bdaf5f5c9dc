"""The error of a single request, with the fields of OpenAI's error object."""

from __future__ import annotations

from wherry.errors import ResourceError, UsageError


class RequestError(UsageError):
    """A request that cannot be served; the engine continues with the others.

    Attributes:
        param: the wrong field, such as "messages[0].content"; None if no single field is wrong.
        code: a machine-readable name, such as "context_length_exceeded"; or None.
    """

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class ContextOverflow(RequestError):
    """A request whose prompt and output exceed the model's context.

    Attributes:
        context: maximum number of tokens of prompt and output together.
        prompt: number of the prompt's tokens, or fewer.
        excess: number of tokens too many.
    """

    def __init__(
        self, message: str, *, param: str | None, context: int, prompt: int, output: int
    ) -> None:
        super().__init__(message, param=param, code="context_length_exceeded")
        self.context = context
        self.prompt = prompt
        self.excess = prompt + output - context


class BusyError(ResourceError):
    """The request queue is full; the same request may be served later.

    Attributes:
        retry_after: seconds after which there may be room; None: unknown.
    """

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
