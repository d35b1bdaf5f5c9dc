"""A model that thinks and calls tools, as Qwen's write it."""

from __future__ import annotations

TEMPLATE = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools> <tool_call>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}"
    "{% endif %}"
)
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
CALLS = (
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>'
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
)
THOUGHT = "<think>\nhm\n</think>\n\n"
CITIES = [{"city": "Köln"}, {"city": "Rome"}]
