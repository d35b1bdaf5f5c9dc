"""MLCEngine over the real core and a library that TVM compiled, in a process without TVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ..support.tiny_compiled import compile_tiny

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    return folder, compile_tiny(folder)


SCRIPT = """
import json, sys, threading, time
from wherry.runtime import MLCEngine
from wherry.runtime.core.interface import SamplingParams
folder, prompts = json.loads(sys.argv[1])
with MLCEngine(folder, context=60, max_batch=3, threads=1) as engine:
    outputs = {}
    def run(i):
        params = SamplingParams(max_tokens=12, temperature=0, top_logprobs=2)
        events = list(engine.generate(prompts[i], params))
        assert all(e.top[0] == (e.token, e.logprob) for e in events), events
        outputs[i] = [e.token for e in events]
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(prompts))]
    [t.start() for t in threads]; [t.join() for t in threads]
    answer = engine.chat.completions.create(messages=[{"role": "user", "content": ""}],
                                            temperature=0, max_tokens=5)
    sampled = [engine.completions.create(prompt=[3], seed=s, temperature=2, max_tokens=40)
               for s in (1, 1, 2)]
    seeds = [s.choices[0].text for s in sampled]
    ignored = engine.completions.create(prompt=[3], max_tokens=9, temperature=0,
                                        logit_bias={7: 100}).choices[0].text
    errors = []
    for call in (lambda: engine.completions.create(prompt=[16]),
                 lambda: engine.completions.create(prompt=[1], max_tokens=60)):
        try: call()
        except Exception as e: errors.append(type(e).__name__)
    stream = engine.completions.create(prompt=[1], max_tokens=59, stream=True)
    next(stream); stream.close()
    end = time.monotonic() + 5  # the pages return when the step under way is over
    while (stats := engine.stats()).pages_free < stats.pages_total and time.monotonic() < end:
        time.sleep(0.005)
print(json.dumps({
    "outputs": [outputs[i] for i in range(len(prompts))],
    "chat": answer.choices[0].message.content, "seeds": seeds, "bias": ignored, "errors": errors,
    "free": stats.pages_free == stats.pages_total, "finished": stats.finished,
    "loaded": [m for m in ("tvm", "tvm_ffi", "torch", "fastapi") if m in sys.modules],
}))
"""


def test_engine(compiled, tmp_path):
    folder, greedy = compiled
    prompts = [[3], [1, 2, 3, 4, 5, 6, 7], [9] * 21, [15, 1, 15], [4, 4]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WHERRY_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([str(folder), prompts])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["outputs"] == [greedy(p, 12) for p in prompts]
    words = [f"t{i}" for i in greedy([1, 2], 5) if i != 0]
    assert report["chat"] == " ".join(words)
    assert report["seeds"][0] == report["seeds"][1] != report["seeds"][2]
    assert report["bias"].split() == ["t7"] * 9
    assert report["errors"] == ["RequestError", "ContextOverflow"]
    assert report["free"]
    assert report["loaded"] == []
    assert list((tmp_path / "packed").iterdir())


def test_core_refuses_with_its_own_words(compiled, tmp_path):
    folder, _ = compiled
    script = (
        "import sys; from wherry.runtime import MLCEngine\n"
        "try: MLCEngine(sys.argv[1], max_batch=5000)\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WHERRY_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("UsageError"), done.stderr
    assert "max_batch" in done.stdout


STRUCTURED = """
import json, sys, threading
from wherry.runtime import MLCEngine
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.library import open_core
from wherry.runtime.grammar.audit import prepared
from wherry.runtime.grammar.compiler import find_llguidance
from wherry.runtime.grammar.native import Vocabulary
folder, schema, end = json.loads(sys.argv[1])
tokens = ['{"', 'a', '":', '1', '2', '}', ', ', 'b', '[', ']', 'null', '"', '-', ' ', ':', '']
outputs = []
for max_batch in (1, 4):
    with MLCEngine(folder, context=60, max_batch=max_batch, threads=1) as engine:
        vocabulary = Vocabulary(open_core(), find_llguidance(), [t.encode() for t in tokens])
        grammar = vocabulary.compile("json_schema", prepared(schema, None))
        found = {}
        def run(seed):
            params = SamplingParams(seed=seed, temperature=2, grammar=grammar, stop_ids=(end,))
            events = list(engine.generate([3, seed % 7], params))
            text = "".join(tokens[e.token] for e in events if e.token >= 0)
            found[seed] = [text, Finish(events[-1].finish).name, events[-1].error]
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(10)]
        [t.start() for t in threads]; [t.join() for t in threads]
        outputs.append([found[seed] for seed in range(10)])
        stats = engine.stats()
print(json.dumps([outputs, stats.steps, stats.decode_tokens]))
"""


def test_masks_of_a_grammar(compiled, tmp_path):
    """The real engine under real masks: every output is valid, and the same in any company."""
    folder, _ = compiled
    numbers = {"type": "array", "items": {"enum": [1, 2, 12, None]}, "minItems": 1, "maxItems": 5}
    schema = {
        "type": "object",
        "properties": {"ab": numbers, "b": {"enum": [-1, None]}},
        "required": ["ab", "b"],
        "additionalProperties": False,
    }
    done = subprocess.run(
        [sys.executable, "-c", STRUCTURED, json.dumps([str(folder), schema, 15])],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "WHERRY_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (alone, together), steps, tokens = json.loads(done.stdout)
    assert alone == together
    validator = Draft202012Validator(schema)
    for text, finish, error in alone:
        assert finish == "STOP", (text, finish, error)
        assert not list(validator.iter_errors(json.loads(text))), text
    assert len({text for text, _, _ in alone}) > 3
    assert steps < tokens  # several rows a step, and jumps over what is forced
