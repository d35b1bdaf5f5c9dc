"""Parts of responses in which neighbours of a kind are one, as C++ gives them."""

from __future__ import annotations

from wherry.runtime.server.endpoints.parts import CallArguments, Reasoning, Text


def joined(parts):
    result = []
    for part in parts:
        mergeable = result and type(result[-1]) is type(part)
        if mergeable and isinstance(part, Text | Reasoning | CallArguments):
            result[-1] = type(part)(result[-1].text + part.text)
        else:
            result.append(part)
    return result
