"""What `wherry plan` says against what a process has in memory that does all that it may.

Measured is VmHWM, the most that was resident: anonymous memory (cache, tensors of steps, Python)
and what is mapped (libraries, and the weights, which are a mapped file). The process first reads a
prompt that fills a step, then fills the whole cache with requests that are all decoded at once.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from wherry.cli.planned import needs
from wherry.compiler.api import Limits, ensure_artifact
from wherry.errors import ResourceError
from wherry.runtime.load import memory

from ..support.command import here, python, wherry
from .test_commands import write_tokenizer

TOLERANCE = 0.05
# Of a small model the program's own libraries are the larger part; how many of their pages are
# resident moves between runs of the same: 169 to 187 MB in eight.
RESIDENT_MOVES = 16_000_000
FILL = """
import json, random, sys, threading
from wherry.runtime import MLCEngine
from wherry.runtime.core.interface import SamplingParams
from wherry.runtime.load.program_memory import resident
folder, context, batch, vocab = sys.argv[1], *map(int, sys.argv[2:])
engine = MLCEngine(folder, context=context, max_batch=batch)
WRITTEN = 64
def one(seed):
    rng = random.Random(seed)
    prompt = [rng.randrange(3, vocab) for _ in range(context - WRITTEN - 1)]
    for _ in engine.generate(prompt, SamplingParams(max_tokens=WRITTEN)):
        pass
one("alone")
threads = [threading.Thread(target=one, args=(i,)) for i in range(batch)]
[t.start() for t in threads]
[t.join() for t in threads]
assert engine.stats().pages_total * 16 == context * batch
print(resident("VmHWM"))
"""
LLAMA = {
    "model_type": "llama",
    "vocab_size": 16000,
    "hidden_size": 512,
    "intermediate_size": 1536,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
QWEN = LLAMA | {
    "model_type": "qwen3",
    "attention_bias": False,
    "use_sliding_window": False,
    "sliding_window": None,
    "max_window_layers": 28,
}
# config.json; quant, kv_dtype; context, max_batch
CONFIGURATIONS = {
    "llama": (LLAMA, "q4f16_1", "auto", 1024, 4),
    "large vocabulary": (
        LLAMA | {"vocab_size": 100_000, "num_hidden_layers": 4},
        "q4f16_1",
        "auto",
        640,
        16,
    ),
    "8 bits, untied": (
        LLAMA | {"vocab_size": 32_000, "tie_word_embeddings": False, "num_hidden_layers": 6},
        "q8f16_1",
        "auto",
        1024,
        8,
    ),
    "floats": (LLAMA | {"num_hidden_layers": 4}, "q0f32", "float32", 768, 8),
    "cache in int8": (LLAMA | {"num_key_value_heads": 8}, "q4f32_1", "int8", 2048, 4),
    "cache in int4": (LLAMA | {"num_key_value_heads": 8}, "q4f32_1", "int4", 2048, 4),
    "qwen3": (QWEN | {"num_hidden_layers": 6}, "q0f16", "auto", 1024, 8),
}
CHECKED = [
    pytest.param(name, marks=[] if name == "llama" else pytest.mark.nightly)
    for name in CONFIGURATIONS
]


def write_model(folder, config):
    """A checkpoint of one block of random numbers, again and again."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    block = (np.random.default_rng(0).standard_normal(1 << 18) * 0.05).astype(np.float16)
    d, inner, e = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * e, config["num_key_value_heads"] * e
    layer = {"self_attn.q_proj": (q, d), "self_attn.k_proj": (kv, d), "self_attn.v_proj": (kv, d)}
    layer |= {"self_attn.o_proj": (d, q), "mlp.gate_proj": (inner, d), "mlp.up_proj": (inner, d)}
    layer |= {"mlp.down_proj": (d, inner), "input_layernorm": (d,)}
    layer |= {"post_attention_layernorm": (d,)}
    if config["model_type"] == "qwen3":
        layer |= {"self_attn.q_norm": (e,), "self_attn.k_norm": (e,)}
    shapes = {"model.embed_tokens": (config["vocab_size"], d), "model.norm": (d,)}
    for i in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    if not config["tie_word_embeddings"]:
        shapes["lm_head"] = (config["vocab_size"], d)
    tensors = {f"{n}.weight": np.resize(block, s) for n, s in shapes.items()}
    save_file(tensors, folder / "model.safetensors")
    write_tokenizer(folder)


@pytest.mark.cpu
@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.nightly
def test_the_peak_is_what_was_planned(name, tmp_path):
    config, quant, kv_dtype, context, batch = CONFIGURATIONS[name]
    model = tmp_path / "model"
    write_model(model, config)
    limits = Limits(max_batch=batch)
    options = {"quant": quant, "kv_dtype": kv_dtype}
    folder = ensure_artifact(str(model), limits=limits, **options)
    planned, problem = needs(str(folder), {"context": context, "max_batch": batch})
    assert problem is None
    arguments = (str(folder), str(context), str(batch), str(config["vocab_size"]))
    for load in ("first", "second"):  # the first packs the weights
        peak = int(python(FILL, *arguments))
        print(f"{name}, {load} load: planned {planned.total / 1e6:.1f} MB, {peak / 1e6:.1f} MB")
        assert abs(planned.total - peak) < max(TOLERANCE * peak, RESIDENT_MOVES), load


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_plan_before_a_compilation_is_that_of_its_manifest(tmp_path):
    model = tmp_path / "model"
    write_model(model, LLAMA | {"num_hidden_layers": 1, "vocab_size": 500})
    options = {"quant": "q8f16_1", "kv_dtype": "int8", "context": 512}
    before, _ = needs(str(model), options)
    folder = ensure_artifact(str(model), quant="q8f16_1", kv_dtype="int8")
    after, _ = needs(str(folder), {"context": 512})
    assert before.program and after.program
    own = {"name", "program", "free", "total", "largest"}
    assert {k: v for k, v in before.record().items() if k not in own} == {
        k: v for k, v in after.record().items() if k not in own
    }
    assert after.kv_dtype == "int8" and after.parameters == before.parameters > 0


class TestFit:
    """The numbers of small.json: 1 MB of weights, 1 kB a token."""

    @pytest.fixture
    def small(self):
        from types import SimpleNamespace

        sizes = {"weights": 1_000_000, "workspace": 0, "kv_per_token": 1000}
        limits = {"context": 4096, "max_batch": 8, "prefill_chunk": 512}
        known = {"quantization": "q4f16_1", "target": {"kind": "llvm"}}
        return SimpleNamespace(
            name="small", memory=sizes, deployment=limits, capabilities=(), **known
        )

    def sized(self, small, free, **options):
        from wherry.runtime.load.loading import sized

        return sized(small, options, memory.Room(free))

    def test_auto_takes_the_largest_that_fits(self, small):
        assert self.sized(small, 10**9, context="auto")["context"] == 4096  # the model's own
        sized = self.sized(small, 3_000_000, context="auto")
        assert sized["context"] == sized["kv_tokens"] == 1800 // 16 * 16  # 90% of 2 MB
        assert self.sized(small, None, context="auto")["context"] == 4096

    def test_what_was_requested_is_given_or_refused(self, small):
        sized = self.sized(small, 3_000_000, context=1700)
        assert sized["context"] == 1700 and 1700 <= sized["kv_tokens"] < 1800
        with pytest.raises(ResourceError) as raised:
            self.sized(small, 3_000_000, context=2000)
        said = str(raised.value)
        assert "2,000 tokens takes 2.0 MB, and 1.0 MB" in said and "3.0 MB are free" in said
        assert "--context 1792" in said and "--context auto" in said

    def test_nothing_requested_is_as_it_was(self, small):
        assert self.sized(small, 3_000_000)["kv_tokens"] == 1000 // 16 * 16
        assert self.sized(small, 10**9)["kv_tokens"] == 8 * 4096


@pytest.mark.cpu
class TestCommand:
    def test_table_and_json(self):
        done = here("plan", "demo", "--context", "256", "--max-batch", "2")
        assert (done.returncode, done.stderr) == (0, "")
        first, *rows = done.stdout.splitlines()
        assert first.endswith(": context of 256 tokens, of the model's 1,024")
        names = [row.split()[0] for row in rows]
        assert names == ["program", "weights", "a", "cache", "total", "free", "--context"]
        assert all(len(row) <= 100 for row in rows) and "it fits" in rows[5]
        plan = json.loads(here("plan", "demo", "--json").stdout)
        assert plan["fits"] and plan["cache"] == plan["kv_tokens"] * plan["kv_per_token"]
        parts = ("program", "weights", "step", "cache")
        assert plan["total"] == sum(plan[part] for part in parts)

    def test_run_says_which_context_memory_has_chosen(self):
        done = wherry("run", "demo", "--context", "auto", "--max-tokens", "1", "x")
        assert done.returncode == 0
        assert done.stderr == "Context: 1,024 tokens, all of the model's.\n"
        wrong = wherry("run", "demo", "--context", "some", "x")
        assert wrong.returncode == 2 and "neither a whole number from 1 nor auto" in wrong.stderr
