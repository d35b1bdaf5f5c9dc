"""A function that the model calls. `required` makes it call one, with arguments of the schema."""

import json
import sys

from wherry import MLCEngine

MODEL = sys.argv[1] if len(sys.argv) > 1 else "demo"
CITIES = ["Oslo", "Paris", "Rome"]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": CITIES}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


def weather(city: str) -> str:
    """What a service would answer."""
    return f"It rains in {city}."


with MLCEngine(MODEL) as engine:
    messages = [{"role": "user", "content": "Do I need an umbrella in Oslo?"}]
    choice = engine.chat.completions.create(
        messages=messages, tools=[WEATHER], tool_choice="required", temperature=0
    ).choices[0]
    messages.append(choice.message.model_dump())
    for call in choice.message.tool_calls:
        arguments = json.loads(call.function.arguments)
        print(f"weather({arguments})")
        result = weather(**arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answer = engine.chat.completions.create(messages=messages, temperature=0, max_tokens=64)
    print(answer.choices[0].message.content)
