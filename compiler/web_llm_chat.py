"""A model's chat template in WebLLM's form: texts before, between and after messages.

WebLLM writes a conversation as `system_template`, then for each message its role, its content and a
separator, one for the user's and one for the model's messages. So the template is rendered with
markers for contents, and the texts between the markers are read: roles are empty, and a separator
has the end of one message and the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from wherry.errors import UsageError

_USER, _ASSISTANT, _AGAIN, _SYSTEM = "\ue000", "\ue001", "\ue002", "\ue003"
_PLACE = "{system_message}"  # WebLLM's placeholder for the system message in `system_template`


def conversation(template: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of WebLLM's `conv_template`: system_template, system_message, seps.

    Args:
        template: the Jinja template.
        names: template variables other than messages: bos_token, eos_token.

    Raises:
        UsageError: WebLLM's form cannot express the template.
    """
    first, between, after, last = _texts(
        template,
        names,
        [("user", _USER), ("assistant", _ASSISTANT), ("user", _AGAIN)],
    )
    if last != between:
        raise UsageError(
            f"The model's chat template writes {between!r} after a message, and {last!r} after the "
            "last one; WebLLM has one text for both. Type: --target webgpu"
        )
    fields = {"system_template": first, "system_message": "", "seps": [between, after]}
    try:
        before, behind, _ = _texts(template, names, [("system", _SYSTEM), ("user", _USER)])
    except UsageError:  # the template accepts no system message
        return fields
    usual = ""
    if first.startswith(before) and first.endswith(behind):
        usual = first[len(before) : max(len(first) - len(behind), len(before))]
    return fields | {"system_template": before + _PLACE + behind, "system_message": usual}


def _texts(
    template: str, names: Mapping[str, Any], messages: list[tuple[str, str]]
) -> tuple[str, ...]:
    """Render `messages` and return the texts before, between and after their contents."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    given = [{"role": role, "content": content} for role, content in messages]
    try:
        rendered = environment.from_string(template).render(
            messages=given, add_generation_prompt=True, **names
        )
    except jinja2.TemplateError as e:
        raise UsageError(f"The model's chat template cannot be used: {e}") from e
    texts = []
    for _, mark in messages:
        text, separator, rendered = rendered.partition(mark)
        if not separator:
            raise UsageError(
                "The model's chat template does not write every message once, in order. "
                "Type: --target webgpu"
            )
        texts.append(text)
    return (*texts, rendered)


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)
