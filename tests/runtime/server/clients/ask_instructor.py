"""Instructor's partial objects, and openai's accumulator of the version that goes with it.

The model at argv[1] calls weather, which is asked for by name.
"""

from __future__ import annotations

import sys

import instructor
import openai
from pydantic import BaseModel


class weather(BaseModel):  # the tool has its name
    """Says the weather."""

    city: str


client = openai.OpenAI(base_url=f"{sys.argv[1]}/v1", api_key="x", max_retries=0)
fields = {"model": "small", "messages": [{"role": "user", "content": "x"}]}
patched = instructor.from_openai(client, mode=instructor.Mode.TOOLS)
assert patched.chat.completions.create(response_model=weather, **fields).city == "Köln"
for _ in range(4):
    *_, last = patched.chat.completions.create_partial(response_model=weather, **fields)
    assert last.city == "Köln", last
    tools = [openai.pydantic_function_tool(weather)]
    with client.chat.completions.stream(**fields, tools=tools) as stream:
        kinds = {event.type for event in stream}
        first, second = stream.get_final_completion().choices[0].message.tool_calls
    assert "tool_calls.function.arguments.done" in kinds, kinds
    parsed = [first.function.parsed_arguments, second.function.parsed_arguments]
    assert parsed == [weather(city="Köln"), weather(city="Rome")], parsed
print("all is well")
