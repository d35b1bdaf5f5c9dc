"""The commands on a tiny model: what goes to stdout, what to stderr, and the exit codes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from wherry.artifact.manifest import read_manifest
from wherry.cli.group import cli
from wherry.errors import ResourceError, UsageError

from ..support.command import SRC, environment, here, python, wherry
from ..support.tiny_models import save

TEXT = ["The fox ran over the hill and saw a small river.", "Once upon a time there was a fox."]
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"


def write_tokenizer(folder):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"eos_token": "</s>", "bos_token": "<s>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny-llama")
    save(folder, "llama")
    write_tokenizer(folder)
    return str(folder)


@pytest.mark.cpu
class TestCommands:
    def test_compile_writes_a_folder_and_finds_it_again(self, model, tmp_path):
        out = tmp_path / "compiled"
        arguments = (
            "compile",
            model,
            "--quant",
            "q4f32_1",
            "--context",
            "64",
            "--kv-dtype",
            "float32",
            "--activations",
            "float",
        )
        arguments += ("-o", str(out))
        first = here(*arguments)
        assert (first.returncode, first.stdout) == (0, f"{out}\n"), first.stderr
        manifest = read_manifest(out)
        assert manifest.deployment["context"] == 64
        assert manifest.deployment["activations"] == "float"
        assert manifest.memory["weights"] > 0 and manifest.memory["workspace"] > 0
        assert (
            manifest.memory["kv_per_token"] == 2 * 2 * 2 * 16 * 4
        )  # layers, k and v, heads, e, f32
        before = (out / "model.so").stat().st_mtime_ns
        assert here(*arguments).returncode == 0
        assert (out / "model.so").stat().st_mtime_ns == before  # a cache hit
        other = here(*arguments, "--max-batch", "3", "--activations", "int8")  # other inputs
        assert other.returncode == 0
        assert (out / "model.so").stat().st_mtime_ns != before
        assert read_manifest(out).deployment["activations"] == "int8"

    def test_compile_says_what_it_wrote_and_for_whom(self, model, tmp_path):
        out = tmp_path / "phone"
        done = here("compile", model, "--target", "metal", "--host", "ios", "-o", str(out))
        assert (done.returncode, done.stdout) == (0, f"{out}\n"), done.stderr
        symbols = read_manifest(out).target["objects"]["symbols"]
        assert "for metal on arm64-apple-ios16.0\n" in done.stderr
        assert f'Mach-O objects to link; found by SystemLib("{symbols}")' in done.stderr
        wrong = here("compile", model, "--target", "metal", "--host", "android")
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert "it can have macos, macabi, ios, ios-simulator" in wrong.stderr

    def test_run_writes_the_text_alone(self, model):
        done = wherry("run", model, "--max-tokens", "5", "--seed", "1", "Hello")
        assert done.returncode == 0, done.stderr
        assert done.stdout and done.stderr == ""
        again = wherry("run", model, "--max-tokens", "5", "--seed", "1", stdin="Hello")
        assert again.stdout == done.stdout

    def test_completion(self, model):
        done = wherry("run", model, "--completion", "--max-tokens", "4", "Once upon")
        assert done.returncode == 0 and "Once upon" not in done.stdout
        assert wherry("run", model, "--completion", stdin="").returncode == 2

    def test_chat_answers_line_by_line(self, model):
        lines = "Hello\n/stats\n/reset\n/help\nAgain\n"
        done = wherry("chat", model, "--max-tokens", "3", "--temperature", "0", stdin=lines)
        assert done.returncode == 0, done.stderr
        assert re.search("/reset +forget", done.stderr) and "conversation is new" in done.stderr
        assert "/reset" not in done.stdout

    def test_list(self, model):
        assert wherry("run", model, "--max-tokens", "1", "x").returncode == 0
        rows = json.loads(here("list", "--json").stdout)
        assert any(r["name"].startswith("tiny-llama") for r in rows)
        assert "q4f16_1" in here("list").stdout

    @pytest.mark.nightly
    def test_debug_dump(self, model, tmp_path):
        done = wherry("compile", model, "--debug-dump", str(tmp_path / "dump"))
        assert done.returncode == 0, done.stderr
        names = sorted(p.name for p in (tmp_path / "dump").iterdir())
        phases = ["export", "quantize", "attach", "fuse", "lower", "schedule", "link"]
        assert names[: len(phases)] == [f"{i}_{n}.py" for i, n in enumerate(phases, 1)]
        assert "rms_norm" in (tmp_path / "dump" / "4_fuse.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "no-such-folder", "x"), 2, "There is no folder 'no-such-folder'"),
        (("run", "org/name", "x"), 2, "Did you mean hf://org/name?"),
        (("compile", "demo", "--target", "toaster"), 2, "Unknown target 'toaster'"),
        (("convert", "demo", "--quant", "q5"), 2, "Unknown quantization 'q5'"),
        (("compile", "tests"), 3, "has no config.json"),
        (("walk",), 2, "There is no command 'walk'. There are run, chat"),
    ],
)
def test_errors_say_what_to_type(arguments, code, said):
    done = here(*arguments)
    assert done.returncode == code and done.stdout == ""
    assert said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("typed", "fix"),
    [
        ("ls", "list --help"),
        ("servr", "serve --help"),
        ("rnu demo 'A story.'", "run demo 'A story.'"),
        ("hf://org/name", "run hf://org/name"),
        ("src/wherry/demo", "run src/wherry/demo"),
        ("README.md", "--help"),
    ],
)
def test_what_is_no_command(typed, fix, monkeypatch):
    monkeypatch.chdir(SRC.parent)
    with pytest.raises(UsageError, match=f"Type: wherry {fix}$"):
        cli.main(shlex.split(typed), standalone_mode=False)


WRONG = {
    "dmeo": "Did you mean demo?",
    "./bots": "Did you mean ./boat?",
    "boad.gguf": "There is no file 'boad.gguf'.\nDid you mean boat.gguf?",
    "README.md": "README.md is a file, and no model.\nMODEL is one of",
}
IMPORTED = """
import sys
from wherry.cli.group import cli
from wherry.errors import UsageError
for name in sys.argv[2:]:
    try:
        cli.main([*sys.argv[1].split(), name], standalone_mode=False)
    except UsageError as e:
        print(e, end="\\0")
slow = {"tvm", "numpy", "huggingface_hub", "rich", "pydantic", "fastapi"} & set(sys.modules)
assert not slow, slow
"""


@pytest.mark.parametrize("command", ["run", "serve", "package", "run demo --draft"])
def test_a_wrong_name_is_an_error_before_anything_is_loaded(command, tmp_path, monkeypatch):
    (tmp_path / "boat").mkdir()
    (tmp_path / "boat" / "config.json").write_text("{}")
    (tmp_path / "boat.gguf").write_text("")
    (tmp_path / "README.md").write_text("")
    monkeypatch.chdir(tmp_path)
    lines = python(IMPORTED, command, *WRONG).split("\0")
    for said, expected in zip(lines, WRONG.values(), strict=False):
        assert expected in said
    assert len(lines) == len(WRONG) + 1


def test_output_that_cannot_be_written_is_no_matter_of_the_cache():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "wherry", "completion", "bash"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment())
    said = done.stderr.decode()
    assert said == "Error: The output cannot be written: No space left on device.\n"
    assert done.returncode == ResourceError.exit_code


def test_help_of_every_command():
    text = wherry("--help").stdout
    for name in ("run", "chat", "serve", "convert", "compile", "list", "doctor"):
        assert f"  {name} " in text
        assert here(name, "--help").stdout.startswith("Usage:")
