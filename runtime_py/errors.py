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

    Clients search the message for these words, which are vLLM's, and then shorten the conversation.

    Args:
        context: maximum number of tokens of prompt and output together.
        prompt: number of the prompt's tokens.
        output: number of tokens that the output needs.
        field: the request's field with the prompt.
        hint: a sentence that says what else helps.
        at_least: whether the prompt may have more tokens, which were not counted.
    """

    def __init__(
        self,
        context: int,
        prompt: int,
        output: int,
        *,
        field: str,
        hint: str = "",
        at_least: bool = False,
    ) -> None:
        least = "at least " if at_least else ""
        super().__init__(
            f"This model's maximum context length is {context} tokens. However, you requested "
            f"{least}{prompt + output} tokens ({least}{prompt} in the {field}, {output} in the "
            f"completion). Please reduce the length of the {field} or completion. "
            f"{hint}{' ' if hint else ''}(context_length_exceeded)",
            param=field,
            code="context_length_exceeded",
        )
        self.context = context
        self.prompt = prompt
        self.excess = prompt + output - context  # tokens


class BusyError(ResourceError):
    """The request queue is full; the same request may be served later.

    Attributes:
        retry_after: seconds after which there may be room; None: unknown.
    """

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
