"""Every file that we read, damaged in every way: a result or a clear error, and nothing else.

Seeded: case n of a file is the same damage each time. A failure names the case and keeps what was
read; `WHERRY_CACHE` and PYTHONPATH aside, `tests/fuzz/victim.py` alone reproduces it.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wherry.artifact import manifest as artifact

from ..runtime import small_tokenizers
from ..support import artifacts, tiny_models
from ..support.command import environment
from ..support.tiny_compiled import compile_tiny
from . import mutate

pytestmark = pytest.mark.cpu
FEW, MANY = 12, 400  # cases of a file
Damage = Callable[[bytes, random.Random], bytes]


class Victim:
    """See victim.py."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("victim.py")), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(RUST_BACKTRACE="0"),
        )
        assert "ready" in self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the victim ended with {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def attempt(self, target: str, folder: Path, cache: Path) -> dict[str, str]:
        request = {"target": target, "folder": str(folder), "cache": str(cache)}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="module")
def runtime() -> Iterator[Victim]:
    victim = Victim("runtime")
    yield victim
    victim.close()


@pytest.fixture(scope="module")
def compiler() -> Iterator[Victim]:
    victim = Victim("compiler")
    yield victim
    victim.close()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> tuple[Path, list[int]]:
    """A compiled folder with every file that may be in one, and the tokens that it generates."""
    folder = tmp_path_factory.mktemp("compiled")
    greedy = compile_tiny(folder)
    (folder / "config.json").write_text('{"eos_token_id": [], "text_config": {}}')
    (folder / "special_tokens_map.json").write_text('{"unk_token": {"content": "t0"}}')
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m['role'] }} t1 {{ m['content'] | trim }}{% endfor %}"
    )
    generation = {"do_sample": True, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "min_p": 0.1}
    (folder / "generation_config.json").write_text(json.dumps(generation | {"eos_token_id": []}))
    describe_files(folder)
    return folder, greedy([3, 1], 8)


def describe_files(folder: Path) -> None:
    """Make the manifest fit the files."""
    files = {p.name: artifact.record(p) for p in folder.iterdir() if p.name != artifact.MANIFEST}
    records = {n: {"size": r.size, "sha256": r.sha256} for n, r in files.items()}
    artifacts.edit(folder, lambda raw: raw.update(files=records))


def cases(name: str, count: int) -> Iterator[tuple[str, random.Random]]:
    for n in range(count):
        yield f"case {n} of {name}", random.Random(f"{name} {n}")


def either(data: bytes, rng: random.Random) -> bytes:
    """For JSON: half of the cases stay JSON."""
    return (mutate.damaged if rng.random() < 0.5 else mutate.rewritten)(data, rng)


amount = pytest.mark.parametrize(
    "count", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)], ids=["few", "many"]
)

TEXTS: list[tuple[str, Damage]] = [
    ("generation_config.json", either),
    ("config.json", either),
    ("tokenizer.json", either),
    ("tokenizer_config.json", either),
    ("special_tokens_map.json", either),
    ("chat_template.jinja", mutate.damaged),
]


def check(answer: dict[str, str], case: str, folder: Path) -> dict[str, str]:
    assert answer["outcome"] != "broken", f"{case}, in {folder}:\n{answer['said']}"
    return answer


@amount
@pytest.mark.parametrize(("name", "damage"), TEXTS)
@pytest.mark.by_day("config.json-either-few", "jinja-damaged-few")
def test_texts_of_a_compiled_folder(runtime, compiled, tmp_path, name, damage, count):
    folder = shutil.copytree(compiled[0], tmp_path / "folder")
    content = (folder / name).read_bytes()
    outcomes = []
    for case, rng in cases(name, count):
        (folder / name).write_bytes(damage(content, rng))
        outcomes.append(check(runtime.attempt("texts", folder, tmp_path), case, folder)["outcome"])
    assert "refused" in outcomes


@amount
@pytest.mark.parametrize("save", ["byte_level", "byte_fallback", "metaspace", "word_piece"])
def test_tokenizers_of_other_kinds(runtime, compiled, tmp_path, save, count):
    folder = shutil.copytree(compiled[0], tmp_path / "folder")
    getattr(small_tokenizers, save)().save(str(folder / "tokenizer.json"))
    content = (folder / "tokenizer.json").read_bytes()
    for case, rng in cases(save, count):
        (folder / "tokenizer.json").write_bytes(either(content, rng))
        check(runtime.attempt("texts", folder, tmp_path), case, folder)


@amount
@pytest.mark.parametrize("name", ["model.so", "params_shard_0.bin", "tensor-cache.json"])
def test_what_the_manifest_does_not_expect_is_refused(runtime, compiled, tmp_path, name, count):
    folder = shutil.copytree(compiled[0], tmp_path / "folder")
    content = (folder / name).read_bytes()
    for case, rng in cases(f"unexpected {name}", count):
        changed = mutate.damaged(content, rng)
        (folder / name).write_bytes(changed)
        answer = check(runtime.attempt("load", folder, tmp_path / "cache"), case, folder)
        assert answer["outcome"] == ("done" if changed == content else "refused"), case


@amount
@pytest.mark.parametrize("name", ["params_shard_0.bin", "tensor-cache.json"])
def test_weights_that_the_manifest_expects(runtime, compiled, tmp_path, name, count):
    """Such a folder is not damaged, it was made so."""
    folder = shutil.copytree(compiled[0], tmp_path / "folder")
    content = (folder / name).read_bytes()
    for case, rng in cases(f"expected {name}", count):
        (folder / name).write_bytes((either if "json" in name else mutate.damaged)(content, rng))
        describe_files(folder)
        cache = tmp_path / "cache"
        check(runtime.attempt("load", folder, cache), case, folder)
        shutil.rmtree(cache / "packed", ignore_errors=True)


@amount
def test_manifests(runtime, compiled, tmp_path, count):
    folder = shutil.copytree(compiled[0], tmp_path / "folder")
    path = folder / artifact.MANIFEST
    content = path.read_bytes()
    for case, rng in cases(artifact.MANIFEST, count):
        fits = rng.random() < 0.7
        if fits:
            raw = json.loads(mutate.rewritten(content, rng))
            path.write_text(json.dumps(raw | {"digest": artifact.digest(raw)}))
        else:
            path.write_bytes(mutate.damaged(content, rng))
        answer = check(runtime.attempt("load", folder, tmp_path / "cache"), case, folder)
        if answer["outcome"] == "done":
            assert fits or path.read_bytes() == content, case


@amount
def test_packed_weights(runtime, compiled, tmp_path, count):
    """The result is always right: what is damaged is made again."""
    folder, expected = compiled
    cache = tmp_path / "cache"
    assert json.loads(runtime.attempt("load", folder, cache)["said"]) == expected
    (path,) = (cache / "packed").glob("*/*.bin")
    content = path.read_bytes()
    for case, rng in cases("packed", count):
        path.write_bytes(mutate.damaged(content, rng))
        answer = check(runtime.attempt("load", folder, cache), case, folder)
        assert json.loads(answer["said"]) == expected, case


@amount
def test_stamps(runtime, compiled, tmp_path, count):
    folder, expected = compiled
    cache = tmp_path / "cache"
    runtime.attempt("load", folder, cache)
    stamps = sorted((cache / "verified").iterdir())
    assert len(stamps) == 2  # of the folder's files, of the packed weights
    for case, rng in cases("verified", count):
        path = rng.choice(stamps)
        path.write_bytes(either(path.read_bytes(), rng))
        answer = check(runtime.attempt("load", folder, cache), case, folder)
        assert json.loads(answer["said"]) == expected, case


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A model in Hugging Face's layout, in two files."""
    folder = tmp_path_factory.mktemp("model") / "hf"
    small = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
    scaling = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64,
               "rope_theta": 1e4, "beta_fast": 32.0}  # fmt: skip
    sizes = {**small, "num_key_value_heads": 1, "num_hidden_layers": 1, "vocab_size": 64}
    saved = tiny_models.save(folder, "qwen3", **sizes, head_dim=16, rope_parameters=scaling)
    (folder / "model.safetensors").unlink()
    saved.save_pretrained(folder, max_shard_size="8KB")
    small_tokenizers.byte_level().save(str(folder / "tokenizer.json"))
    return folder


@amount
@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json", "header", "data"])
@pytest.mark.by_day("config.json-few", "header-few")
def test_models(compiler, model, tmp_path, name, count):
    folder = shutil.copytree(model, tmp_path / "hf")
    path = folder / name
    if name in ("header", "data"):
        path = max(folder.glob("*.safetensors"))
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    for case, rng in cases(name, count):
        if name == "header":
            text = either(content[8 : 8 + length], rng)
            size = length if rng.random() < 0.2 else len(text)
            path.write_bytes(size.to_bytes(8, "little") + text + content[8 + length :])
        else:
            path.write_bytes((mutate.damaged if name == "data" else either)(content, rng))
        check(compiler.attempt("convert", folder, tmp_path / "cache"), case, folder)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


@amount
def test_what_a_conversion_left(compiler, model, tmp_path, count):
    """The result is always that of the first: what is damaged is made again."""
    folder, cache = shutil.copytree(model, tmp_path / "hf"), tmp_path / "cache"
    first = check(compiler.attempt("convert", folder, cache), "whole", folder)
    out = tmp_path / "out"
    marker = (out / "wherry-weights.json").read_bytes()
    for case, rng in cases("converted", count):
        path = rng.choice(sorted(p for p in out.iterdir() if p.suffix in (".json", ".bin")))
        content = path.read_bytes()
        if rng.random() < 0.3:  # killed before its end
            path = path.rename(out / ".wherry-convert.json") if content == marker else path
        path.write_bytes((either if path.suffix == ".json" else mutate.damaged)(content, rng))
        answer = check(compiler.attempt("convert", folder, cache), case, folder)
        assert answer == first, case
