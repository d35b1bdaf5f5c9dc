"""OpenAI's Agents SDK, and LangChain over Responses, against the server at argv[1].

The model calls weather twice in its first answer, and says "sunny" when it sees a result.
"""

from __future__ import annotations

import asyncio
import sys

from agents import (
    Agent,
    OpenAIConversationsSession,
    Runner,
    function_tool,
    set_default_openai_client,
    set_tracing_disabled,
)
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI

cities = []


@function_tool
def weather(city: str) -> str:
    """Says the weather."""
    cities.append(city)
    return f"It is sunny in {city}."


async def main(url: str) -> None:
    client = AsyncOpenAI(base_url=url, api_key="x", max_retries=0)
    set_default_openai_client(client, use_for_tracing=False)
    set_tracing_disabled(True)
    agent = Agent(name="a", instructions="Be brief.", model="small", tools=[weather])
    result = await Runner.run(agent, "weather?")
    assert (result.final_output.strip(), cities) == ("sunny", ["Köln", "Rome"]), result
    streamed = Runner.run_streamed(agent, "weather?")
    kinds = [event.type async for event in streamed.stream_events()]
    assert "run_item_stream_event" in kinds and streamed.final_output.strip() == "sunny"
    session = OpenAIConversationsSession(openai_client=client)
    await Runner.run(agent, "weather?", session=session)
    items = await session.get_items()
    assert [i.get("type") for i in items].count("function_call_output") == 2, items
    await Runner.run(agent, "and now?", previous_response_id=result.last_response_id)


asyncio.run(main(f"{sys.argv[1]}/v1"))
chat = ChatOpenAI(model="small", base_url=f"{sys.argv[1]}/v1", api_key="x", use_responses_api=True)
schema = {"title": "weather", "description": "d", "type": "object",
          "properties": {"city": {"type": "string"}}, "required": ["city"]}  # fmt: skip
called = chat.bind_tools([schema]).invoke("weather?")
assert len(called.tool_calls) == 2, called
assert len(list(chat.stream("weather?"))) > 2
print("all is well")
