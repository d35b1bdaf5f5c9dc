"""MLCEngine over the scripted core: texts, shapes, counts, ends."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from wherry.errors import UsageError, WherryError
from wherry.runtime import MLCEngine, RequestError
from wherry.runtime.core.interface import Finish, SamplingParams

from .conftest import core_of

TEXT = "Hello, wörld 🎉!"
HI = [{"role": "user", "content": "the cat"}]


@pytest.fixture
def engine(make):
    return MLCEngine.of(make(TEXT))


def wait_free(engine, seconds=5.0):
    """The stats when all pages are back."""
    end = time.monotonic() + seconds
    while (stats := engine.stats()).pages_free < stats.pages_total:
        assert time.monotonic() < end, stats
        time.sleep(0.002)
    return stats


def test_chat(engine):
    answer = engine.chat.completions.create(messages=HI)
    assert answer.choices[0].message.content == TEXT
    assert answer.choices[0].finish_reason == "stop"
    tokens = len(engine.loaded.tokenizer.encode(TEXT)) + 1
    assert answer.usage.completion_tokens == tokens
    prompt, params = core_of(engine.loaded).added[0]
    text = engine.loaded.tokenizer.decode(prompt, skip_special_tokens=False)
    assert text == "<|user|>the cat<|assistant|>"
    assert answer.usage.prompt_tokens == len(prompt)
    assert params.stop_ids == engine.loaded.tokenizer.eos_ids
    assert params.max_tokens == 512 - len(prompt)


def test_chat_streams_the_same_text(engine):
    chunks = list(
        engine.chat.completions.create(
            messages=HI, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == TEXT
    assert [c.choices[0].finish_reason for c in chunks[:-1]][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == engine.chat.completions.create(messages=HI).usage
    assert len({c.id for c in chunks}) == 1


def test_closing_a_stream_frees_its_request(make):
    engine = MLCEngine.of(make(None, context=100_000, pages=100_000, step_seconds=0.001))
    with engine.chat.completions.create(messages=HI, stream=True) as stream:
        next(stream)
        next(stream)
        assert engine.stats().running == 1
    assert wait_free(engine).running == 0
    assert list(stream) == []
    dropped = engine.completions.create(prompt="a", stream=True, max_tokens=50_000)
    del dropped  # never even begun
    assert wait_free(engine).running == 0


def test_ctrl_c_frees_the_request_and_is_raised_again(make):
    engine = MLCEngine.of(make(None, context=1_000_000, pages=100_000, step_seconds=0.001))

    def interrupt():
        while engine.stats().running == 0:
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    # A process that a script starts in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            engine.chat.completions.create(messages=HI)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert wait_free(engine).running == 0


def test_several_choices_have_seeds_of_their_own(engine):
    answer = engine.chat.completions.create(messages=HI, n=3, seed=7)
    assert [c.message.content for c in answer.choices] == [TEXT] * 3
    assert [c.index for c in answer.choices] == [0, 1, 2]
    first = [p.seed for _, p in core_of(engine.loaded).added]
    assert first[0] == 7
    assert len(set(first)) == 3
    engine.chat.completions.create(messages=HI, n=3, seed=7)
    assert [p.seed for _, p in core_of(engine.loaded).added[3:]] == first
    engine.chat.completions.create(messages=HI)
    engine.chat.completions.create(messages=HI)
    a, b = core_of(engine.loaded).added[6:]
    assert a[1].seed != b[1].seed


def test_completions_of_lists(engine):
    ids = engine.loaded.tokenizer.encode("the")
    answer = engine.completions.create(prompt=["the", "the cat"], n=2, max_tokens=4)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3]
    assert {c.finish_reason for c in answer.choices} == {"length"}
    assert answer.usage.completion_tokens == 16
    assert answer.usage.prompt_tokens == len(ids) + len(engine.loaded.tokenizer.encode("the cat"))
    engine.completions.create(prompt=ids)
    engine.completions.create(prompt=[ids, ids])
    added = core_of(engine.loaded).added
    assert [p for p, _ in added[4:]] == [ids] * 3
    assert added[4][1].max_tokens == 16  # OpenAI's default


def test_stop_string_across_tokens_ends_the_request(make):
    engine = MLCEngine.of(make("one two three four " * 20))
    answer = engine.completions.create(prompt="a", stop=["o thr", "zzz"], max_tokens=300)
    assert answer.choices[0].text == "one tw"
    assert answer.choices[0].finish_reason == "stop"
    chunks = list(engine.completions.create(prompt="a", stop="e tw", stream=True, max_tokens=300))
    assert "".join(c.choices[0].text for c in chunks) == "on"
    assert wait_free(engine).running == 0


def test_a_kept_beginning_of_a_stop_string_is_given_at_the_end(make):
    engine = MLCEngine.of(make("abc EN"))
    answer = engine.chat.completions.create(messages=HI, stop="END")
    assert answer.choices[0].message.content == "abc EN"


def test_ignore_eos_runs_to_the_limit(engine):
    answer = engine.chat.completions.create(messages=HI, ignore_eos=True, max_tokens=50)
    assert answer.usage.completion_tokens == 50
    assert answer.choices[0].finish_reason == "length"
    assert answer.choices[0].message.content == TEXT  # the eos token is no text


def test_context_ends_the_output(make):
    engine = MLCEngine.of(make(None, context=40))
    answer = engine.chat.completions.create(messages=HI)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.total_tokens == 40


def test_a_small_cache_bounds_the_context(make):
    engine = MLCEngine.of(make(None, context=512, pages=4))
    assert engine.chat.completions.create(messages=HI).usage.total_tokens == 64
    with pytest.raises(RequestError, match="context length is 64 tokens"):
        engine.completions.create(prompt=[5] * 30, max_tokens=40)


def test_too_long_for_the_context_names_the_numbers(make):
    engine = MLCEngine.of(make(TEXT, context=40))
    with pytest.raises(
        RequestError, match=r"length is 40 tokens.* 45 tokens \(5 in the prompt, 40"
    ) as e:
        engine.completions.create(prompt=[5, 6, 7, 8, 9], max_tokens=40)
    assert e.value.code == "context_length_exceeded"
    with pytest.raises(RequestError, match=r"41 tokens \(40 in the prompt"):
        engine.completions.create(prompt=[5] * 40)
    engine.completions.create(prompt=[5] * 39)  # the default of max_tokens gives way


def test_chat_logprobs(engine):
    answer = engine.chat.completions.create(messages=HI, logprobs=True, top_logprobs=2)
    content = answer.choices[0].logprobs.content
    assert b"".join(bytes(t.bytes) for t in content).decode() == TEXT
    assert content[0].logprob == -0.5
    assert [t.logprob for t in content[0].top_logprobs] == [-0.5, -1.5]
    chunks = engine.chat.completions.create(messages=HI, logprobs=True, stream=True)
    streamed = [t for c in chunks if (logprobs := c.choices[0].logprobs) for t in logprobs.content]
    assert [t.bytes for t in streamed] == [t.bytes for t in content]


def test_completion_logprobs(make):
    engine = MLCEngine.of(make("one END two"))
    answer = engine.completions.create(prompt="a", logprobs=1, stop="END", max_tokens=20)
    choice = answer.choices[0]
    assert choice.text == "one "
    assert "".join(choice.logprobs.tokens).startswith("one ")
    assert choice.logprobs.text_offset[0] == 0
    assert max(choice.logprobs.text_offset) < len(choice.text)
    assert len(choice.logprobs.top_logprobs[0]) == 1


def test_generation_config_gives_the_defaults(make):
    defaults = {"temperature": 0.6, "top_p": 0.9, "top_k": 20, "repetition_penalty": 1.1}
    for config, expected in (
        (defaults, (0.6, 0.9, 20, 1.1)),
        ({**defaults, "do_sample": False}, (1.0, 1.0, 0, 1.1)),
        ({}, (1.0, 1.0, 0, 1.0)),
    ):
        model = make(TEXT, defaults=config)
        MLCEngine.of(model).chat.completions.create(messages=HI)
        p = core_of(model).added[0][1]
        assert (p.temperature, p.top_p, p.top_k, p.repetition_penalty) == expected
        MLCEngine.of(model).chat.completions.create(messages=HI, temperature=0, top_p=0.5)
        p = core_of(model).added[1][1]
        assert (p.temperature, p.top_p) == (0, 0.5)


def test_wrong_arguments_are_all_named(engine):
    with pytest.raises(RequestError) as e:
        engine.chat.completions.create(messages=HI, temperature=9, top_p=0)
    assert "temperature" in str(e.value)
    assert "top_p" in str(e.value)
    with pytest.raises(UsageError, match=r"'max_token' .did you mean 'max_tokens'"):
        engine.chat.completions.create(messages=HI, max_token=3)
    with pytest.raises(RequestError, match=r"tools\[0\].custom.name"):
        engine.chat.completions.create(messages=HI, tools=[{"type": "custom", "custom": {}}])
    with pytest.raises(RequestError, match=r"'functions' \(send 'tools'\)"):
        engine.chat.completions.create(messages=HI, functions=[{"name": "f"}])
    with pytest.raises(RequestError, match="prompt is empty"):
        engine.completions.create(prompt="")
    with pytest.raises(RequestError, match="token 4096"):
        engine.completions.create(prompt=[4096])


def test_without_a_template_chat_says_what_to_use(make):
    with pytest.raises(RequestError, match=r"engine\.completions\.create"):
        MLCEngine.of(make(TEXT, template=None)).chat.completions.create(messages=HI)


def test_generate_gives_events(make):
    engine = MLCEngine.of(make(None, context=1000))
    events = list(engine.generate([5, 6], SamplingParams(max_tokens=3)))
    assert [e.finish for e in events] == [Finish.RUNNING, Finish.RUNNING, Finish.LENGTH]
    begun = engine.generate([5, 6], SamplingParams())
    next(begun)
    begun.close()
    assert wait_free(engine).running == 0


def test_a_failed_step_is_an_error_of_its_requests_only(make):
    engine = MLCEngine.of(make(TEXT))
    core_of(engine.loaded).fail_with = "the device is gone"
    with pytest.raises(WherryError, match="the device is gone"):
        engine.chat.completions.create(messages=HI)
    assert engine.chat.completions.create(messages=HI).choices[0].message.content == TEXT


def test_a_broken_engine_and_a_closed_one_say_so(make):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    engine = MLCEngine.of(model)
    stream = engine.chat.completions.create(messages=HI, stream=True)
    core_of(model).break_with = "broken"
    with pytest.raises(WherryError, match="broken"):
        list(stream)
    with pytest.raises(WherryError, match="broken"):
        engine.chat.completions.create(messages=HI)
    engine.close()
    assert core_of(model).closed
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    with MLCEngine.of(model) as engine:
        stream = engine.chat.completions.create(messages=HI, stream=True)
    with pytest.raises(WherryError, match="closed"):
        list(stream)
    engine.close()


def test_threads_share_one_engine(make):
    engine = MLCEngine.of(make(TEXT, step_seconds=0.001))
    texts: list[str] = []

    def ask():
        for _ in range(3):
            texts.append(engine.chat.completions.create(messages=HI).choices[0].message.content)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert texts == [TEXT] * 48
    assert wait_free(engine).finished == 48
