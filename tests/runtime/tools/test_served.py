"""OpenAI's own client with tools, and a model that draws any token its grammar allows."""

from __future__ import annotations

import asyncio
import json

import jsonschema
import openai
import pytest
from pydantic import BaseModel

from wherry.runtime import AsyncMLCEngine, MLCEngine, RequestError
from wherry.runtime.text.tokenizer import Tokenizer

from .. import small_tokenizers
from ..conftest import core_of
from ..live_server import live
from ..test_structured_output import Obedient
from .test_chats import ASK, CALL, NOW, PLAIN, TEMPLATE, TOOLS
from .test_history import ALTERNATE

STRICT = [{**t, "function": {**t["function"], "strict": True}} for t in TOOLS]
SCHEMA = TOOLS[0]["function"]["parameters"]


HERMES = TEMPLATE.replace("think>", "pondering>")  # a model that does not think in marks


class Saying:
    """A model that says a text which its grammar allows."""

    def __init__(self, text: str) -> None:
        tokenizer = Tokenizer(small_tokenizers.byte_level())
        self._ids = [*tokenizer.encode(text), tokenizer.special_id("</s>")]

    def __call__(self, prompt, params, n):
        return self._ids[n]

    def accept(self, params, token) -> bool:
        return False


@pytest.fixture
def client(make):
    script = Saying(f"So.{CALL}{NOW}")
    with (
        live(make(script=script, template=HERMES, context=2048, step_seconds=0.001)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
    ):
        yield client


def test_the_client_reads_calls(client):
    answer = client.chat.completions.create(model="small", messages=ASK, tools=TOOLS)
    names = [c.function.name for c in answer.choices[0].message.tool_calls]
    assert names == ["weather", "now"]
    assert answer.choices[0].finish_reason == "tool_calls"
    again = [
        *ASK,
        answer.choices[0].message,
        *(
            {"role": "tool", "tool_call_id": c.id, "content": "ok"}
            for c in answer.choices[0].message.tool_calls
        ),
    ]
    assert client.chat.completions.create(model="small", messages=again, tools=TOOLS).choices


def test_the_client_puts_a_stream_together(client):
    arguments = []
    with client.chat.completions.stream(model="small", messages=ASK, tools=STRICT[:1]) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.delta":
                arguments.append(event.arguments_delta)
        final = stream.get_final_completion()
    assert len(arguments) > 3
    assert final.choices[0].message.content == "So."
    first, second = final.choices[0].message.tool_calls
    assert json.loads(first.function.arguments) == {"city": "Oslo"}
    assert second.function.name == "now"


@pytest.fixture
def obedient(make):
    """An engine for a template, whose model obeys its grammar and nothing else."""

    def build(template):
        return MLCEngine.of(make(template=template, script=Obedient(), context=2048))

    return build


@pytest.mark.parametrize("template", [HERMES, PLAIN], ids=["hermes", "json"])
@pytest.mark.parametrize("stream", [False, True])
def test_required_calls_come(obedient, template, stream):
    engine = obedient(template)
    seen = set()
    for seed in range(4):
        answer = engine.chat.completions.create(
            messages=ASK, tools=TOOLS[:1], tool_choice="required", seed=seed, stream=stream
        )
        if stream:
            chunks = [c.choices[0] for c in answer]
            text = "".join(
                t.function.arguments
                for c in chunks
                for t in c.delta.tool_calls or ()
                if t.index == 0
            )
            finish = chunks[-1].finish_reason
        else:
            (choice,) = answer.choices
            text, finish = choice.message.tool_calls[0].function.arguments, choice.finish_reason
        jsonschema.validate(json.loads(text), SCHEMA)
        assert finish == "tool_calls"
        seen.add(text)
    assert len(seen) > 1


def test_a_named_call_ends_as_openais_does(obedient):
    answer = obedient(HERMES).chat.completions.create(
        messages=ASK,
        tools=STRICT,
        tool_choice={"type": "function", "function": {"name": "weather"}},
    )
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather"
    assert answer.choices[0].finish_reason == "stop"


def test_allowed_tools(obedient):
    engine = obedient(HERMES)
    choice = {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "required",
            "tools": [{"type": "function", "function": {"name": "weather"}}],
        },
    }
    answer = engine.chat.completions.create(messages=ASK, tools=STRICT, tool_choice=choice)
    assert {c.function.name for c in answer.choices[0].message.tool_calls} == {"weather"}


def test_a_schema_or_calls_after_reasoning(obedient):
    """response_format with tools and reasoning: reasoning, then a call or the format."""
    engine = obedient(TEMPLATE)
    response_format = {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"const": [1]}},
    }
    kinds = set()
    for seed in range(30):
        choice = engine.chat.completions.create(
            messages=ASK, tools=STRICT, response_format=response_format, seed=seed, max_tokens=300
        ).choices[0]
        if choice.finish_reason == "length":
            continue
        kinds.add(choice.finish_reason)
        if choice.finish_reason == "stop":
            assert json.loads(choice.message.content) == [1]
    assert kinds == {"stop", "tool_calls"}


def test_strict_tools_that_cannot_be_enforced(obedient):
    wrong = {"type": "object", "properties": {"a": {"contains": {}}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": wrong, "strict": True}}
    with pytest.raises(RequestError, match="#/properties/a/contains") as e:
        obedient(TEMPLATE).chat.completions.create(messages=ASK, tools=[tool])
    assert e.value.param == "tools"


def test_without_strict_tools_nothing_is_constrained(make):
    model = make(CALL, template=TEMPLATE)
    engine = MLCEngine.of(model)
    engine.chat.completions.create(messages=ASK, tools=TOOLS)
    assert core_of(model).added[-1][1].grammar is None


def test_the_asynchronous_engine(make):
    engine = AsyncMLCEngine.of(make(f"<think>Hm.</think>So.{CALL}", template=TEMPLATE))

    async def both():
        fields = {"messages": ASK, "tools": TOOLS}
        answer = await engine.chat.completions.create(**fields)
        stream = await engine.chat.completions.create(**fields, stream=True)
        return answer.choices[0], [chunk.choices[0] async for chunk in stream]

    full, chunks = asyncio.run(both())
    assert (full.message.reasoning_content, full.message.content) == ("Hm.", "So.")
    calls = [call for c in chunks for call in c.delta.tool_calls or ()]
    assert calls[0].function.name == full.message.tool_calls[0].function.name == "weather"
    text = "".join(call.function.arguments for call in calls)
    assert text == full.message.tool_calls[0].function.arguments == '{"city": "Oslo"}'
    assert "".join(c.delta.reasoning or "" for c in chunks) == "Hm."
    assert chunks[-1].finish_reason == full.finish_reason == "tool_calls"


def test_parse_with_a_pydantic_model(client):
    class Weather(BaseModel):
        city: str

    answer = client.chat.completions.parse(
        model="small", messages=ASK, tools=[openai.pydantic_function_tool(Weather, name="weather")]
    )
    assert answer.choices[0].message.tool_calls[0].function.parsed_arguments == Weather(city="Oslo")


def test_what_a_template_refuses_is_adapted_and_named(make):
    messages = [*ASK, *ASK, {"role": "system", "content": "be kind"}]
    for adapts in (True, False):
        model = make(template=ALTERNATE, script=Saying("So."), context=2048, adapt_messages=adapts)
        with (
            live(model) as url,
            openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0) as client,
        ):
            create = client.chat.completions.with_raw_response.create
            if not adapts:
                with pytest.raises(openai.BadRequestError, match="does not accept these messages"):
                    create(model="small", messages=messages)
                continue
            adapted = create(model="small", messages=messages).headers["X-Wherry-Adapted"]
            assert adapted == "system-reminders, turns-joined"
            assert "X-Wherry-Adapted" not in create(model="small", messages=ASK).headers
