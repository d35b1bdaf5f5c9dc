"""Weights that PyTorch pickled, and tokenizers that are no tokenizer.json."""

from __future__ import annotations

import base64
import json
import pickle
import random
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tiktoken
import torch
import transformers

from wherry.base import extras
from wherry.compiler import tokenizer_files
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_weights
from wherry.compiler.convert import convert
from wherry.compiler.weight_cache import load_state
from wherry.errors import ModelError, ToolchainError
from wherry.hub import repository
from wherry.hub.file_names import PICKLED, PICKLED_INDEX
from wherry.runtime.text.tokenizer import Tokenizer

from .convert_toy import weights
from .test_convert_transformers import ARCH

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}
PAIRS = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def tiny(dtype=torch.float32):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).to(dtype)


def shapes_of(model):
    """Of our parameters."""
    shapes = {n: tuple(t.shape) for n, t in model.state_dict().items()}
    for fused, parts in PAIRS.items():
        for name in [n for n in shapes if f".{parts[0]}." in n]:
            rows = [shapes.pop(name.replace(parts[0], part)) for part in parts]
            shapes[name.replace(parts[0], fused)] = (sum(r[0] for r in rows), rows[0][1])
    return shapes


def converted(folder, model):
    out = folder.parent / f"{folder.name}-out"
    convert(weights(folder, shapes_of(model), ARCH, scheme="q0f32"), out)
    return load_state(out)


@pytest.mark.parametrize("form", ["one", "before-2020", "shards", "views"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pickled_weights_are_those_of_safetensors(tmp_path, form, dtype):
    model = tiny(dtype)
    model.save_pretrained(tmp_path / "new")
    old = tmp_path / "old"
    old.mkdir()
    (old / "config.json").write_text((tmp_path / "new" / "config.json").read_text())
    tensors = dict(model.state_dict())
    if form == "views":  # a transposed one, and one that begins inside its storage
        name = "model.layers.0.self_attn.o_proj.weight"
        tensors[name] = tensors[name].t().contiguous().t()
        head = tensors["lm_head.weight"]
        tensors["lm_head.weight"] = torch.cat([head[:1], head])[1:]
    if form == "shards":
        halves = {"pytorch_model-00001-of-00002.bin": {}, "pytorch_model-00002-of-00002.bin": {}}
        for i, (name, tensor) in enumerate(tensors.items()):
            list(halves.values())[i % 2][name] = tensor
        for file, own in halves.items():
            torch.save(own, old / file)
        names = {name: file for file, own in halves.items() for name in own}
        (old / PICKLED_INDEX).write_text(json.dumps({"weight_map": names}))
    else:
        torch.save(
            tensors,
            old / PICKLED,
            _use_new_zipfile_serialization=form != "before-2020",
        )
    got, want = converted(old, model), converted(tmp_path / "new", model)
    assert got.keys() == want.keys()
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


class Program:
    def __reduce__(self):
        return print, ("this must not be printed",)


def test_a_file_with_a_program_is_refused_and_does_not_run(tmp_path, capfd):
    (tmp_path / PICKLED).write_bytes(pickle.dumps({"w": Program()}))
    with pytest.raises(ModelError, match="take a model that has safetensors"):
        open_weights(tmp_path)
    torch.save({"w": Program()}, tmp_path / PICKLED)
    with pytest.raises(ModelError, match="take a model that has safetensors"):
        open_weights(tmp_path)
    assert "must not" not in capfd.readouterr().out


def test_what_is_no_tensor_and_a_damaged_file(tmp_path):
    path = tmp_path / PICKLED
    torch.save({"w": torch.zeros(2), "step": 7, "optimizer": {"a": torch.zeros(1)}}, path)
    with pytest.raises(ModelError, match=r"not tensors:\n.*step\n.*optimizer"):
        open_weights(tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelError, match="damaged"):
        open_weights(tmp_path)


def test_without_pytorch_the_error_says_what_to_type(tmp_path, monkeypatch):
    torch.save({"w": torch.zeros(2)}, tmp_path / PICKLED)
    monkeypatch.setattr(extras, "installed", lambda name: False)
    with pytest.raises(ToolchainError, match=r"wherry\[torch\]"):
        open_weights(tmp_path)


@pytest.mark.parametrize("has", [True, False])
def test_the_hub_has_pickled_weights_alone(monkeypatch, has):
    names = ["config.json", "pytorch_model.bin", "tekken.json", "training_args.bin", "flax.msgpack"]
    info = type("Info", (), {"sha": "c" * 40, "siblings": []})()
    sibling = {"size": 1, "lfs": None, "blob_id": "b" * 40}
    info.siblings = [type("File", (), {"rfilename": name, **sibling})() for name in names]
    monkeypatch.setattr(repository.hf.HfApi, "model_info", lambda *_, **__: info)
    monkeypatch.setattr(extras, "installed", lambda name: has)
    if not has:
        with pytest.raises(ToolchainError, match=r"wherry\[torch\]"):
            repository.list_files("org/name", "main")
        return
    _, files = repository.list_files("org/name", "main")
    assert [f.name for f in files] == ["config.json", "pytorch_model.bin", "tekken.json"]


TEXTS = ["The quick brown fox", "two\n\nlines, é and 你好", "1234567 jumps!", ""]
CORPUS = (
    "The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs! " * 4
)


@pytest.fixture
def folder(tmp_path):
    tiny().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def tokenizer_of(folder):
    """What the converted folder has; conversion is asked for twice, as each start does."""
    converted(folder, tiny())
    file = folder.parent / f"{folder.name}-out" / "tokenizer.json"
    before = file.stat().st_mtime_ns
    converted(folder, tiny())
    assert file.stat().st_mtime_ns == before
    return Tokenizer.from_folder(file.parent)


def test_sentencepiece(folder, monkeypatch):
    corpus = folder.parent / "corpus.txt"
    corpus.write_text(CORPUS.replace(". ", "\n"))
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=320,
        model_type="bpe",
        byte_fallback=True,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        minloglevel=2,
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>"})
    )
    reference = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    tokenizer = tokenizer_of(folder)
    for text in TEXTS:
        assert tokenizer.encode(text, add_special_tokens=False) == reference.encode(text)
    monkeypatch.setattr(extras, "installed", lambda module: module != "sentencepiece")
    with pytest.raises(ToolchainError, match=r"sentencepiece would read.*wherry\[tokenizers\]"):
        tokenizer_files.tokenizer_json(read_folder(folder))


PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
RANKS = {bytes([i]): i for i in range(256)}
for _token in (b"th", b"he", b" th", b" the", b"qu", b"ic", b" qu", b"ick", b"ox", b" quick"):
    RANKS[_token] = len(RANKS)


def tiktoken_of_ranks():
    return tiktoken.Encoding("x", pat_str=PATTERN, mergeable_ranks=RANKS, special_tokens={})


def test_ranks_of_tiktoken(folder):
    write_ranks(folder / "tokenizer.model")
    about = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    tokenizer = tokenizer_of(folder)
    for text in TEXTS:
        assert tokenizer.encode(text, add_special_tokens=False) == tiktoken_of_ranks().encode(text)


# Rules of the models' own programs, as tiktoken takes them.
_QWEN = PATTERN.replace("{1,3}", "")
_UPPER, _LOWER = (
    r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]",
    r"\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]",
)
_BEFORE, _AFTER = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_KIMI = "|".join(
    [
        r"[\p{Han}]+",
        f"{_BEFORE}[{_UPPER}]*[{_LOWER}]+{_AFTER}",
        f"{_BEFORE}[{_UPPER}]+[{_LOWER}]*{_AFTER}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
KIMI_CONFIG = {
    "tokenizer_class": "TikTokenTokenizer",
    "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
    "added_tokens_decoder": {
        str(len(RANKS) + i): {"content": name, "special": special}
        for i, name, special in ((0, "[BOS]", True), (1, "[EOS]", True), (9, "<|im_end|>", False))
    },
    "eos_token": "[EOS]",
}
MORE_TEXTS = (
    "camelCase HTMLText don't WE'RE x1234567 漢字かな交じりABC",
    "ﬁ é é \r\n\n  \tthe  quick",
    "🎉",
)


def write_ranks(path, ranks=RANKS):
    lines = [base64.b64encode(token) + b" %d" % rank for token, rank in ranks.items()]
    path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.parametrize(("name", "rule"), [("tiktoken.model", _KIMI), ("qwen.tiktoken", _QWEN)])
def test_ranks_under_other_names(folder, monkeypatch, name, rule):
    """Before, the model was compiled without a tokenizer; no library is needed."""
    monkeypatch.setattr(extras, "installed", lambda module: False)
    write_ranks(folder / name)
    (folder / "tokenizer_config.json").write_text(json.dumps(KIMI_CONFIG))
    tokenizer = tokenizer_of(folder)
    reference = tiktoken.Encoding("x", pat_str=rule, mergeable_ranks=RANKS, special_tokens={})
    random_texts = [
        "".join(random.Random(i).choices("the quick oxQUH'sé漢 \n19", k=60)) for i in range(50)
    ]
    for text in (*TEXTS, *MORE_TEXTS, *random_texts):
        sent = unicodedata.normalize("NFC", text) if name == "qwen.tiktoken" else text
        assert tokenizer.encode(text, add_special_tokens=False) == reference.encode(sent), text
    special = len(RANKS)
    if name == "qwen.tiktoken":
        assert tokenizer.encode("<|im_start|>the<|extra_204|>")[::3] == [special + 1, special + 207]
        return
    assert tokenizer.encode("[BOS]<|im_end|>") == [special, special + 9]
    assert tokenizer.special_ids == {*range(special, special + 256)} - {special + 9}
    assert tokenizer.encode(f"<|reserved_token_{special + 255}|>") == [special + 255]
    assert special + 1 in tokenizer.eos_ids


@pytest.mark.parametrize(
    ("config", "ranks", "said"),
    [
        ({"tokenizer_class": "OurTokenizer"}, RANKS, "the rule of 'OurTokenizer'"),
        ({}, RANKS, "the rule of None"),
        (KIMI_CONFIG, {b"a": 0}, "has 1 different tokens"),
        (KIMI_CONFIG, RANKS | {b"xyz": 999}, "ranks from 0 on"),
        (KIMI_CONFIG | {"added_tokens_decoder": {"5": {"content": "x"}}}, RANKS, "'5'"),
        (KIMI_CONFIG | {"added_tokens_decoder": [1]}, RANKS, "added_tokens_decoder is \\[1\\]"),
    ],
)
def test_ranks_without_a_rule_are_refused_before_any_work(folder, config, ranks, said):
    write_ranks(folder / "tiktoken.model", ranks)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=said):
        converted(folder, tiny())
    assert not list(folder.parent.rglob("params_shard_*"))
    (folder / "tiktoken.model").write_bytes(b"YQ== 0\nno rank\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(KIMI_CONFIG))
    with pytest.raises(ModelError, match=r"tiktoken\.model, line 2 is no token and rank"):
        converted(folder, tiny())


def test_only_the_library_of_the_format_is_imported(folder, monkeypatch):
    """A folder with SentencePiece's model asked for tiktoken, too."""
    for content, other, needed in (
        (b"\x0a\x0e\x0a\x05<unk>", "tiktoken", "sentencepiece"),
        (b"YQ== 0\n", "sentencepiece", "tiktoken"),
    ):
        (folder / "tokenizer.model").write_bytes(content)
        monkeypatch.setattr(extras, "installed", lambda module, needed=needed: module != needed)
        with pytest.raises(ToolchainError, match=f"{needed} would read") as caught:
            tokenizer_files.tokenizer_json(read_folder(folder))
        assert other not in str(caught.value)


def test_tekken(folder):
    special = 10
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in RANKS.items()
    ]
    tekken = {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": len(vocab),
            "default_vocab_size": len(vocab) + special,
            "default_num_special_tokens": special,
            "version": "v7",
        },
        "vocab": vocab,
        "special_tokens": [
            {"rank": i, "token_str": name, "is_control": True}
            for i, name in enumerate(["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])
        ],
    }
    (folder / "tekken.json").write_text(json.dumps(tekken))
    tokenizer = tokenizer_of(folder)
    for text in TEXTS:
        expected = [i + special for i in tiktoken_of_ranks().encode(text)]
        assert tokenizer.encode(text, add_special_tokens=False) == expected
    assert tokenizer.encode("[INST]", add_special_tokens=False) == [3]


def test_files_that_make_no_tokenizer(folder):
    (folder / "tokenizer.model").write_bytes(b"neither one nor the other")
    with pytest.raises(ModelError, match=r"No tokenizer can be built from tokenizer\.model"):
        converted(folder, tiny())
