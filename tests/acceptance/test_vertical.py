"""From a model folder to a served answer, as a person would: whole processes, real models."""

from __future__ import annotations

import asyncio
import re
import resource
import subprocess
import sys
from pathlib import Path

import openai
import pytest
import torch
import transformers

import wherry as package
from wherry import MLCEngine

from ..runtime.live_server import live
from ..support.command import environment, here, wherry
from ..support.waiting import until

DEMO = Path(package.__path__[0]) / "demo"

# A trained model that is not part of the repository; it is next to the checkout.
STORIES = Path(__file__).parents[3] / "shared" / "models" / "stories260k"
PROMPT = "Once upon a time"


@pytest.fixture(scope="session")
def demo():
    """The compiled demo model, and the CPU seconds that its compilation took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = wherry("compile", "demo")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Path(done.stdout.strip()), seconds


@pytest.mark.cpu
def test_greedy_text_is_that_of_transformers():
    """The demo in float32: each token that we choose is the most likely one of the reference."""
    arguments = ("run", "demo", "--quant", "q0f32", "--kv-dtype", "float32", "--completion")
    arguments += ("--temperature", "0", "--max-tokens", "150", PROMPT)
    done = wherry(*arguments)
    assert done.returncode == 0, done.stderr
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    model = transformers.AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32).eval()
    prompt, text = (tokenizer(t).input_ids for t in (PROMPT, PROMPT + done.stdout.rstrip("\n")))
    assert text[: len(prompt)] == prompt and len(text) >= len(prompt) + 100
    with torch.no_grad():
        logits = model(torch.tensor([text])).logits[0, len(prompt) - 1 : -1]
    chosen = logits[torch.arange(len(logits)), text[len(prompt) :]]
    # Sums in another order; where two tokens are as likely, either will do.
    assert (logits.max(-1).values - chosen).max() < 1e-3


@pytest.mark.cpu
@pytest.mark.skipif(not STORIES.is_dir(), reason=f"needs the reference model in {STORIES}")
def test_150_tokens_are_those_of_the_reference_program():
    common = ("run", str(STORIES), "--quant", "q0f32", "--completion", "--temperature", "0")
    done = wherry(*common, "--max-tokens", "150", PROMPT)
    assert done.returncode == 0, done.stderr
    expected = (STORIES / "reference_once.txt").read_text()
    text = PROMPT + done.stdout.removesuffix("\n")
    assert expected.startswith(text)
    tokens = len(_encode(STORIES, text)) - len(_encode(STORIES, PROMPT))
    assert tokens == 150


def _encode(folder: Path, text: str) -> list[int]:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids


@pytest.mark.cpu
def test_the_demo_compiles_in_a_minute_of_cpu_time(demo):
    assert demo[1] < 60


NO_COMPILER = """
import sys, time
from wherry import MLCEngine
with MLCEngine(sys.argv[1]) as engine:
    stream = engine.completions.create(prompt="Once upon a time", stream=True, max_tokens=8)
    first = next(iter(stream))
    seconds = time.process_time()  # of all threads, since the process began
    list(stream)
print(seconds, sorted(m for m in sys.modules if m == "tvm" or m.startswith("tvm.")))
"""


def _first_token(folder: Path) -> tuple[float, str]:
    done = subprocess.run(
        [sys.executable, "-c", NO_COMPILER, str(folder)],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    seconds, modules = done.stdout.split(maxsplit=1)
    return float(seconds), modules.strip()


@pytest.mark.cpu
def test_a_compiled_folder_runs_without_the_compiler_and_starts_quickly(demo):
    runs = [_first_token(demo[0]) for _ in range(3)]
    assert all(modules == "[]" for _, modules in runs)
    assert min(seconds for seconds, _ in runs) < 2  # of CPU time, independent of other work


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is 2 plus 3?", r"\b(5|five)\b"),
        ("What is the capital of France?", "Paris"),
        ("What is the opposite of hot?", "cold"),
        ("Tell me a story about a fox.", r"(?i)\bfox\b.*\.\s*$"),
    ],
)
@pytest.mark.by_day("Paris", "fox")
def test_the_demo_answers_the_question(demo, question, answer):
    done = wherry("run", "demo", "--temperature", "0", question)
    assert done.returncode == 0, done.stderr
    assert re.search(answer, done.stdout, re.DOTALL), done.stdout


@pytest.fixture(scope="module")
def server(demo):
    """The address of `wherry serve demo` in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "wherry", "serve", str(demo[0]), "--port=0", "--model-name=demo"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    for line in process.stderr:
        if match := re.search(r"http://\S+:\d+", line):
            break
    else:
        pytest.fail("the server ended before it was ready")
    yield match[0]
    process.terminate()
    assert process.wait(timeout=30) == 0


@pytest.mark.cpu
def test_the_openai_client_streams_a_chat(server):
    client = openai.OpenAI(base_url=f"{server}/v1", api_key="none")
    assert [m.id for m in client.models.list()] == ["demo"]
    messages = [{"role": "user", "content": "Hello!"}]
    stream = client.chat.completions.create(
        model="demo", messages=messages, stream=True, seed=1, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert len(text) > 5
    assert chunks[-1].usage.completion_tokens > 0
    response = client.chat.completions.create(model="demo", messages=messages, seed=1)
    assert response.choices[0].message.content == text


@pytest.mark.cpu
def test_sixteen_streams_at_once_say_what_each_says_alone(server):
    client = openai.AsyncOpenAI(base_url=f"{server}/v1", api_key="none")
    animals = ["fox", "bear", "cat", "dog", "owl", "mouse", "duck", "frog"]
    requests = [
        {
            "messages": [{"role": "user", "content": f"Tell me a story about a {animals[i % 8]}."}],
            "seed": 100 + i,
            "temperature": 1.0 if i % 3 else 0.0,
            "max_tokens": 5 + 11 * i,
        }
        for i in range(16)
    ]

    async def answer(fields) -> str:
        stream = await client.chat.completions.create(model="demo", stream=True, **fields)
        return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

    async def both():
        together = await asyncio.gather(*[answer(r) for r in requests])
        return together, [await answer(r) for r in requests]

    together, alone = asyncio.run(both())
    assert together == alone
    assert len(set(alone)) > 8


@pytest.mark.cpu
def test_a_client_that_goes_away_frees_its_request(demo):
    """Sixteen answers that would go on to the end of the context, two at a time."""
    with MLCEngine(demo[0], max_batch=2) as engine, live(engine.loaded) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        messages = [{"role": "user", "content": "Tell me a story about a fox."}]
        endless = {"stream": True, "extra_body": {"ignore_eos": True}}
        for _ in range(16):
            stream = client.chat.completions.create(model="demo", messages=messages, **endless)
            next(iter(stream))
            stream.close()
        until(lambda: engine.stats().pages_free == engine.stats().pages_total)
        until(lambda: engine.stats().running + engine.stats().waiting == 0)
        assert engine.stats().decode_tokens < 16 * engine.loaded.context / 4


def test_the_readme_names_what_there_is():
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for command in re.findall(r"^\| `wherry (\w+)", readme, re.MULTILINE):
        assert here(command, "--help").returncode == 0
