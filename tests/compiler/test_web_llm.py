"""What WebLLM is told of a chat template writes what the template writes."""

from __future__ import annotations

import pytest

from wherry.compiler.web_llm_chat import conversation
from wherry.errors import UsageError
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.targets.target import find

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "a system message of its own": "{% if messages[0].role != 'system' %}<|im_start|>system\n"
    "Be kind.<|im_end|>\n{% endif %}" + CHATML,
    "no place for one": "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('no') }}{% elif m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}",
}
NAMES = {"bos_token": "<s>", "eos_token": "</s>"}


def written(conversation_template, messages, system=None):
    """As WebLLM's Conversation.getPromptArray writes it."""
    text = conversation_template["system_template"].replace(
        "{system_message}", conversation_template["system_message"] if system is None else system
    )
    for i, message in enumerate(messages):
        text += message + conversation_template["seps"][i % len(conversation_template["seps"])]
    return text


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_same_text(name):
    fields, template = conversation(TEMPLATES[name], NAMES), ChatTemplate(TEMPLATES[name], NAMES)
    said = ["Hello.", "Good day!", "Who are you?"]
    roles = ["user", "assistant", "user"]
    messages = [{"role": r, "content": c} for r, c in zip(roles, said, strict=True)]
    expected = template.render(messages)
    if name != "chatml":  # whose block of a system message is there, empty
        assert written(fields, said) == expected
    if name != "no place for one":
        with_system = [{"role": "system", "content": "Be brief."}, *messages]
        assert written(fields, said, "Be brief.") == template.render(with_system)


def test_what_cannot_be_said_is_refused():
    last_is_different = CHATML.replace("assistant\n{% endif", "assistant\n<think>{% endif")
    with pytest.raises(UsageError, match="WebLLM has one text for both"):
        conversation(last_is_different, NAMES)
    with pytest.raises(UsageError, match="does not write every message once"):
        conversation("{{ messages[0].content }}", NAMES)


def test_the_target():
    assert find("webgpu:web-llm").record()["interface"] == "web-llm"
    assert "interface" not in find("webgpu").record()
    with pytest.raises(UsageError, match="or web-llm for a library"):
        find("webgpu:mlc")
