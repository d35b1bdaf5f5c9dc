"""Completions of encoder-decoder models: the prompt is the source, the output a text of its own."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import RequestError
from ..shapes.requests import CompletionRequest


@dataclass(frozen=True, slots=True)
class SourceReader:
    """What the requests of a model have to follow whose encoder reads their prompts."""

    start: tuple[int, ...]  # tokens that the decoder begins with, before the output

    def refuse(self, request: CompletionRequest) -> None:
        """Refuse fields that need the prompt among the decoder's tokens.

        Raises:
            RequestError: the request has such a field.
        """
        for name in ("suffix", "echo", "prompt_logprobs"):
            if getattr(request, name) not in (None, False, ""):
                raise RequestError(
                    f"{name} is not supported by this model: its encoder reads the prompt, and the "
                    "output is a text of its own",
                    param=name,
                    code="unsupported_parameter",
                )

    def check(self, tokens: int, output: int, context: int) -> None:
        """Check that a source and an output of up to `output` tokens fit, each into the context.

        Raises:
            RequestError: one of them does not.
        """
        if tokens > context:
            raise RequestError(
                f"This model reads sources of up to {context} tokens; prompt has {tokens}. "
                "Shorten it.",
                param="prompt",
                code="context_length_exceeded",
            )
        if output > context - len(self.start):
            raise RequestError(
                f"This model writes up to {context - len(self.start)} tokens; max_tokens is "
                f"{output}",
                param="max_tokens",
                code="context_length_exceeded",
            )
