"""Chats with tools and reasoning over the scripted core: what the model sees, what clients get."""

# ruff: noqa: RUF001 - marks of DeepSeek

from __future__ import annotations

import json

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk
from tokenizers import AddedToken

from wherry.runtime import MLCEngine, RequestError
from wherry.runtime.host.request import HostRequest
from wherry.runtime.host.sinks import BlockingSink
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from .. import small_tokenizers
from ..conftest import core_of
from ..fake_core import FakeCore, saying

TEMPLATE = """
{%- for t in tools or [] %}<|system|>{{ t | tojson }}{% endfor %}
{%- for m in messages %}<|{{ m.role }}|>
{%- if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{-
' ' ~ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% if enable_thinking %}<think>{% endif %}{% endif %}"""
PLAIN = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>"
MISTRAL = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}[TOOL_CALLS][ARGS]"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"enum": ["Oslo", "Rome"]}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "now", "description": "Time"}},
]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
NOW = '\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
ASK = [{"role": "user", "content": "x"}]


@pytest.fixture
def engine():
    """An engine whose model writes a text; `special` are further special tokens."""
    models = []

    def build(text="", *, template=TEMPLATE, specials=(), words=(), seconds=0.0, **options):
        backend = small_tokenizers.byte_level()
        backend.add_special_tokens([AddedToken(s, special=True) for s in specials])
        backend.add_tokens([AddedToken(s, special=False) for s in words])
        tokenizer = Tokenizer(backend, {"eos_token": "</s>"})
        script = saying(tokenizer.encode(text), backend.token_to_id("</s>"))
        core = FakeCore(script, context=4096, pages=8192, step_seconds=seconds)
        model = LoadedModel("small", core, SideFiles(tokenizer, ChatTemplate(template)), **options)
        models.append(model)
        return MLCEngine.of(model)

    yield build
    for model in models:
        model.close()


def ask(engine, **fields):
    fields = {"messages": ASK, "tools": TOOLS, **fields}
    return engine.chat.completions.create(**fields)


def prompt_of(engine) -> str:
    prompt, _ = core_of(engine.loaded).added[-1]
    return engine.loaded.tokenizer.decode(prompt, skip_special_tokens=False)


def test_calls_in_openais_shape(engine):
    choice = ask(engine(f"I look.\n{CALL}{NOW}")).choices[0]
    assert choice.finish_reason == "tool_calls"
    dumped = choice.message.model_dump()
    assert dumped["content"] == "I look."
    first, second = dumped["tool_calls"]
    assert first["type"] == "function"
    assert first["function"] == {"name": "weather", "arguments": '{"city": "Oslo"}'}
    assert second["function"] == {"name": "now", "arguments": "{}"}
    assert first["id"] != second["id"]
    only = ask(engine(CALL)).choices[0].message
    assert only.content is None
    words = ask(engine("No.")).choices[0]
    assert (words.message.content, words.finish_reason) == ("No.", "stop")
    assert "tool_calls" not in words.message.model_dump()


def test_calls_stream_as_they_grow(engine):
    chunks = list(ask(engine(f"So.{CALL}{NOW}", seconds=0.002), stream=True))
    deltas = [c.choices[0].delta.model_dump() for c in chunks]
    calls = [call for d in deltas for call in d.get("tool_calls", ())]
    begins = [c for c in calls if "id" in c]
    assert [(c["index"], c["function"]["name"], c["type"]) for c in begins] == [
        (0, "weather", "function"),
        (1, "now", "function"),
    ]
    texts = {0: "", 1: ""}
    for call in calls:
        texts[call["index"]] += call["function"]["arguments"]
    assert texts == {0: '{"city": "Oslo"}', 1: "{}"}
    assert len([c for c in calls if c["index"] == 0]) > 3
    assert "".join(d.get("content") or "" for d in deltas) == "So."
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("words", [[], [CALL], [CALL[:-30], CALL[-30:]]], ids=len)
@pytest.mark.parametrize("said", ["So.", ""])
@pytest.mark.parametrize("logprobs", [False, True])
def test_openais_accumulator_joins_chunks(engine, words, said, logprobs):
    """Also where a token has a name and the first of its arguments, or several calls."""
    it = engine(f"{said}{CALL}{NOW}", words=words)
    expected = ask(it).choices[0].message
    state = ChatCompletionStreamState(input_tools=TOOLS)
    for chunk in ask(it, stream=True, logprobs=logprobs):
        dumped = chunk.model_dump()
        delta = dumped["choices"][0]["delta"]
        assert delta.get("content") != ""  # "" and null are two messages
        indexes = [call["index"] for call in delta.get("tool_calls", ())]
        assert len(set(indexes)) == len(indexes)
        list(state.handle_chunk(ChatCompletionChunk.model_validate(dumped)))
    joined = state.get_final_completion().choices[0].message
    assert joined.content == expected.content == (said or None)
    assert [(c.type, c.function.name, c.function.arguments) for c in joined.tool_calls] == [
        ("function", c.function.name, c.function.arguments) for c in expected.tool_calls
    ]


def test_what_the_model_is_given(engine):
    it = engine(CALL)
    history = [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{bad"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    ask(it, messages=history)
    prompt = prompt_of(it)
    function_tool = json.loads(prompt.split("<|system|>")[1])
    assert function_tool["function"]["name"] == "weather"
    assert function_tool["function"]["description"] == ""
    assert "<|system|>be kind<|user|>ab<|assistant|><think>hm</think>" in prompt
    assert '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>' in prompt
    assert '{"name": "now", "arguments": "{bad"}' in prompt  # as the model wrote it
    assert prompt.endswith("<|tool|>rain<|assistant|>")
    ask(it, tool_choice="none")
    assert "weather" not in prompt_of(it)
    assert ask(it, tool_choice="none").choices[0].message.content == CALL


def test_templates_that_join_texts_get_texts(engine):
    template = "{{ tools }}{% for m in messages %}{% for c in m.tool_calls or [] %}" + (
        "{{ c.function.name + c.function.arguments }}{% endfor %}{{ m.content }}{% endfor %}"
    )
    it = engine("x", template=template)
    call = {"id": "a", "function": {"name": "f", "arguments": '{"b":1}'}}
    ask(it, messages=[*ASK, {"role": "assistant", "tool_calls": [call]}])
    assert 'f{"b":1}' in prompt_of(it)


def test_a_template_that_knows_no_tools(engine):
    it = engine('[{"name": "weather", "arguments": {"city": "Rome"}}]', template=PLAIN)
    choice = ask(it).choices[0]
    assert choice.message.tool_calls[0].function.name == "weather"
    assert prompt_of(it).startswith("<|system|>You can call functions.")
    assert '"enum": ["Oslo", "Rome"]' in prompt_of(it)
    again = [
        {"role": "system", "content": "Hi."},
        *ASK,
        choice.message.model_dump(),
        {"role": "tool", "tool_call_id": choice.message.tool_calls[0].id, "content": "sun"},
        {"role": "tool", "tool_call_id": "?", "content": "two"},
    ]
    ask(it, messages=again)
    prompt = prompt_of(it)
    assert prompt.startswith("<|system|>Hi.\n\nYou can call functions.")
    assert '<|assistant|>[{"name": "weather", "arguments": {"city": "Rome"}}]' in prompt
    assert "<|user|>Result of weather:\nsun\n\nResult of unknown:\ntwo<|assistant|>" in prompt
    no_system = PLAIN.replace(
        "<|{{ m.role", "{{ raise_exception('no') if m.role == 'system' }}<|{{ m.role"
    )
    it = engine("x", template=no_system)
    ask(it)
    assert prompt_of(it).startswith("<|user|>You can call functions.")


def test_a_template_that_prints_calls_and_no_tools(engine):
    """DeepSeek's: the model knows its own format, and is told of tools in words."""
    begin, sep, end = "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁calls▁end｜>"
    call = f"<｜tool▁call▁begin｜>%s{sep}%s<｜tool▁call▁end｜>"
    template = PLAIN.replace(
        "{% endfor %}",
        f"{{% for c in m.tool_calls or [] %}}{begin}<｜tool▁call▁begin｜>"
        f"{{{{ c.function.name }}}}{sep}"
        "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
    )
    said = begin + call % ("weather", '{"city": "Oslo"}') + end
    it = engine(said, template=template, specials=[begin, sep, end])
    message = ask(it).choices[0].message
    assert message.tool_calls[0].function.arguments == '{"city": "Oslo"}'
    assert f"{begin}{call % ('NAME', '{ARGUMENTS}')}{end}" in prompt_of(it)
    ask(it, messages=[*ASK, message.model_dump(), {"role": "tool", "content": "sun"}])
    assert begin + (call % ("weather", '{"city": "Oslo"}')).partition("<｜tool▁call▁end")[0] in (
        prompt_of(it)
    )
    assert "<|tool|>sun" in prompt_of(it)


def test_tokens_tell_where_the_template_does_not(engine):
    template = "{{ tools }}" + PLAIN
    said = "<|tool_call_start|>[now(a='b')]<|tool_call_end|>"
    it = engine(said, template=template, specials=["<|tool_call_start|>", "<|tool_call_end|>"])
    assert ask(it).choices[0].message.tool_calls[0].function.arguments == '{"a": "b"}'


def test_marks_that_are_special_tokens_are_seen(engine):
    """The detokenizer leaves special tokens out; those that a parser needs it writes."""
    text = '[TOOL_CALLS]now[ARGS]{"a": "</s>"}'
    it = engine(text.replace("</s>", "é"), template=MISTRAL, specials=["[TOOL_CALLS]", "[ARGS]"])
    (call,) = ask(it).choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("now", '{"a": "é"}')
    assert len(call.id) == 9
    plain = it.chat.completions.create(messages=ASK).choices[0].message.content
    assert plain == 'now{"a": "é"}'


def test_ids_that_templates_insist_on(engine):
    template = MISTRAL + "{% for m in messages %}{{ m.tool_call_id }};{% endfor %}"
    it = engine("x", template=template)
    tool = {"role": "tool", "tool_call_id": "toolu_01A09q90qw90lq917835lq9", "content": "a"}
    ask(it, messages=[*ASK, tool, {**tool, "tool_call_id": "abcdefghi"}])
    ids = prompt_of(it).partition("[ARGS]")[2].split(";")
    assert len(ids[1]) == 9 and ids[1].isalnum() and ids[2] == "abcdefghi"


def test_one_tool_by_name(engine):
    it = engine(CALL)
    fields = {"tool_choice": {"type": "function", "function": {"name": "nothing"}}}
    with pytest.raises(RequestError, match=r"'nothing'.*'weather', 'now'") as e:
        ask(it, **fields)
    assert e.value.param == "tool_choice.function.name"
    with pytest.raises(RequestError, match="no tools"):
        ask(it, tools=None, tool_choice="any")
    with pytest.raises(RequestError, match="'now' twice"):
        ask(it, tools=[TOOLS[1], TOOLS[1]])


def test_one_call_at_most(engine):
    """parallel_tool_calls false: the output ends with the first call, and the request is freed."""
    it = engine(f"{CALL}{NOW}" + " cat" * 500)
    answer = ask(it, parallel_tool_calls=False)
    assert [c.function.name for c in answer.choices[0].message.tool_calls] == ["weather"]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.completion_tokens < len(it.loaded.tokenizer.encode(CALL)) + 1


def test_reasoning(engine):
    it = engine("<think>\nI see.\n</think>\n\nYes.")
    answer = ask(it, tools=None)
    message = answer.choices[0].message.model_dump()
    assert (message["content"], message["reasoning_content"]) == ("Yes.", "I see.")
    assert message["reasoning"] == "I see."
    counted = answer.usage.completion_tokens_details.reasoning_tokens
    assert counted == len(it.loaded.tokenizer.encode("<think>\nI see.\n</think>"))
    chunks = [c.choices[0].delta for c in ask(it, tools=None, stream=True)]
    assert "".join(d.reasoning_content or "" for d in chunks) == "I see."
    assert "".join(d.content or "" for d in chunks) == "Yes."
    hidden = ask(it, tools=None, include_reasoning=False)
    assert "reasoning_content" not in hidden.choices[0].message.model_dump()
    assert hidden.usage.completion_tokens_details.reasoning_tokens == counted
    left = ask(it, tools=None, reasoning_format="none").choices[0].message
    assert ask(it, tools=None, separate_reasoning=False).choices[0].message == left
    assert left.content == "<think>\nI see.\n</think>\n\nYes."
    assert left.reasoning_content is None


def test_reasoning_that_the_prompt_opens(engine):
    it = engine("I see.</think>Yes.")
    for fields in (
        {"reasoning_effort": "high"},
        {"enable_thinking": True},
        {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "none"},
    ):
        message = ask(it, tools=None, **fields).choices[0].message
        assert prompt_of(it).endswith("<think>")
        assert (message.content, message.reasoning_content) == ("Yes.", "I see.")
    assert ask(it, tools=None, reasoning_effort="none").choices[0].message.content == (
        "I see.</think>Yes."
    )
    cut = ask(it, tools=None, enable_thinking=True, max_tokens=3).choices[0]
    assert (cut.message.content, cut.finish_reason) == ("", "length")
    assert "I see.".startswith(cut.message.reasoning_content)


def test_a_message_that_goes_on(engine):
    it = engine("see.</think>Yes.")
    begun = {"role": "assistant", "content": "<think>I "}
    fields = {"messages": [*ASK, begun], "continue_final_message": True, "tools": None}
    message = ask(it, **fields).choices[0].message
    assert (message.content, message.reasoning_content) == ("Yes.", "see.")
    begun["content"] = "I say <think> and "
    it = engine("go on.", template=PLAIN)
    assert ask(it, **fields).choices[0].message.content == "go on."


def test_effort_without_effect_is_named(engine):
    it = engine("x", template=PLAIN)
    fields = {"messages": ASK, "reasoning_effort": "low", "verbosity": "low"}
    sink = BlockingSink()
    running = it.loaded.start(HostRequest("chat", fields), sink)
    while not running.done:
        running.take(sink.take())
    assert running.opened["ignored"] == ["reasoning_effort", "verbosity"]
    ask(it, tools=None, reasoning_effort="low")  # no error either


def test_stop_strings_see_all_that_is_written(engine):
    it = engine("<think>one two</think>three four")
    message = ask(it, tools=None, stop="four").choices[0].message
    assert (message.reasoning_content, message.content) == ("one two", "three ")
    message = ask(it, tools=None, stop="two").choices[0].message
    assert (message.reasoning_content, message.content) == ("one", "")


def test_timings(engine):
    answer = ask(engine("Yes."), tools=None).model_dump()
    assert answer["timings"].keys() >= {"prompt_n", "prompt_ms", "predicted_n", "predicted_ms"}
    assert answer["timings"]["predicted_n"] == answer["usage"]["completion_tokens"]


def test_the_family_may_be_named(engine):
    it = engine('[TOOL_CALLS]now{"a": 1}', tool_format="mistral")
    assert ask(it).choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
    with pytest.raises(Exception, match="takes one of harmony"):
        engine("x", tool_format="x")


def test_images_are_refused_by_name(engine):
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    with pytest.raises(
        RequestError, match="image_url is not supported; this model reads text"
    ) as e:
        ask(engine("x"), messages=[{"role": "user", "content": [image]}])
    assert e.value.param == "messages[0].content[0].type"


def test_a_harmony_model(engine):
    marks = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>"]
    template = "{{ tools }}{{ reasoning_effort }}<|start|>assistant {# <|channel|><|message|> #}"
    said = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    call = '<|channel|>commentary to=functions.now <|constrain|>json<|message|>{"a":1}<|call|>x'
    it = engine(said + call, template=template, specials=marks)
    choice = ask(it, reasoning_effort="xhigh").choices[0]
    assert choice.message.reasoning_content == "Hm."
    assert choice.message.tool_calls[0].function.arguments == '{"a":1}'
    assert choice.finish_reason == "tool_calls"
    assert "high<|start|>" in prompt_of(it)
    assert "xhigh" not in prompt_of(it)
    it = engine(said + "<|channel|>final<|message|>Yes.", template=template, specials=marks)
    message = it.chat.completions.create(messages=ASK).choices[0].message
    assert (message.content, message.reasoning_content) == ("Yes.", "Hm.")


def test_reasoning_between_special_tokens(engine):
    """A character that a special token cuts is given out before the token's name."""
    template = PLAIN + "{# [THINK] [/THINK] #}"
    it = engine("[THINK]Hm 🎉[/THINK]Yes.", template=template, specials=["[THINK]", "[/THINK]"])
    answer = ask(it, tools=None)
    message = answer.choices[0].message
    assert (message.reasoning_content, message.content) == ("Hm 🎉", "Yes.")
    tokens = it.loaded.tokenizer.encode("[THINK]Hm 🎉[/THINK]")
    assert answer.usage.completion_tokens_details.reasoning_tokens == len(tokens)
    left = ask(it, tools=None, reasoning_format="none").choices[0].message.content
    assert left == "[THINK]Hm 🎉[/THINK]Yes."


def test_a_cut_character_before_a_visible_token(engine):
    """An unfinished character is no reason to lose what follows, nor the marks around it."""
    template = PLAIN + "{# [THINK] [/THINK] #}"
    it = engine("", template=template, specials=["[THINK]", "[/THINK]"])
    encode = it.loaded.tokenizer.encode
    cut, *_ = encode("🎉")
    core_of(it.loaded).script = saying(
        [*encode("[THINK]"), cut, *encode("[/THINK]é")], it.loaded.tokenizer.eos_ids[0]
    )
    message = ask(it, tools=None).choices[0].message
    assert (message.reasoning_content, message.content) == ("\N{REPLACEMENT CHARACTER}", "é")
