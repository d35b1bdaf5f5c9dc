"""Tiny BERTs behind the server: embeddings, rankings and classes, against transformers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from tokenizers import models, normalizers, pre_tokenizers, processors

from wherry.compiler.api import Limits, ensure_artifact
from wherry.runtime import MLCEngine
from wherry.runtime.load.model import LoadedModel

from ..models.encoders import CASES, save
from .live_server import live

pytestmark = pytest.mark.cpu
CLS, SEP = 2, 3
TEXTS = ["w7 w9 w11", "w20", " ".join(f"w{i}" for i in range(30, 110)), "w7 w9 w12"]


def tokenizer(folder):
    """WordPiece with BERT's special tokens, single texts and pairs."""
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": CLS, "[SEP]": SEP}
    vocab |= {f"w{i}": i for i in range(4, 300)}
    result = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    result.normalizer = normalizers.BertNormalizer()
    result.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    result.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    result.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    result.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"sep_token": "[SEP]"}))
    return result


def compiled(folder):
    limits = Limits(max_batch=4, prefill_chunk=128)
    return ensure_artifact(str(folder), target="cpu", quant="q0f32", limits=limits)


def post(url, **fields):
    body = json.dumps(fields).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def cross_encoder(folder, labels, **config):
    kind = transformers.AutoModelForSequenceClassification
    model = save(folder, CASES["bert"], kind, num_labels=labels, **config)
    encoder = tokenizer(folder)
    return compiled(folder), model, encoder


def logits(model, encoder, *texts):
    encoding = encoder.encode(*texts)
    with torch.no_grad():
        ids, kinds = torch.tensor([encoding.ids]), torch.tensor([encoding.type_ids])
        return model(ids, token_type_ids=kinds).logits[0].numpy()


def test_embeddings(tmp_path):
    model = save(tmp_path, CASES["bert"])
    encoder = tokenizer(tmp_path)
    with live(LoadedModel.load(compiled(tmp_path))) as url:
        status, answer = post(f"{url}/v1/embeddings", input=TEXTS)
        assert status == 200
        assert answer["usage"] == {"prompt_tokens": 95, "total_tokens": 95}
        for text, item in zip(TEXTS, answer["data"], strict=True):
            with torch.no_grad():
                expected = model(torch.tensor([encoder.encode(text).ids]))[0][0].mean(0).numpy()
            assert np.abs(np.array(item["embedding"]) - expected).max() < 1e-5
        alone = post(f"{url}/v1/embeddings", input=TEXTS[2])[1]["data"][0]
        assert alone["embedding"] == answer["data"][2]["embedding"]
        status, answer = post(f"{url}/v1/embeddings", input="w5 " * 127)
        assert status == 400 and "at most 128 tokens" in answer["error"]["message"]
        cut = post(f"{url}/v1/embeddings", input="w5 " * 127, truncate=True)[1]
        assert cut["usage"]["prompt_tokens"] == 128
        chat = {"messages": [{"role": "user", "content": "hi"}]}
        for path, fields in (("chat/completions", chat), ("completions", {"prompt": "hi"})):
            status, answer = post(f"{url}/v1/{path}", **fields)
            assert status == 400, answer
            assert "/v1/embeddings" in answer["error"]["message"]
        status, answer = post(f"{url}/classify", input="w5")
        assert status == 400 and "has no classes" in answer["error"]["message"]


def test_a_cross_encoder_ranks(tmp_path):
    folder, model, encoder = cross_encoder(tmp_path, 1)
    documents = ["w20 w21", "w7 w9 w12", "w9"]
    expected = [
        1 / (1 + np.exp(-float(logits(model, encoder, "w7 w9", text)[0]))) for text in documents
    ]
    with live(LoadedModel.load(folder)) as url:
        status, answer = post(f"{url}/v1/rerank", query="w7 w9", documents=documents)
        assert status == 200, answer
        scores = {item["index"]: item["relevance_score"] for item in answer["results"]}
        assert np.abs(np.array([scores[i] for i in range(3)]) - expected).max() < 1e-5
        assert [item["index"] for item in answer["results"]] == list(np.argsort(expected)[::-1])
        assert answer["usage"]["prompt_tokens"] == 7 + 8 + 6
        status, answer = post(f"{url}/v1/score", text_1="w7 w9", text_2=documents)
        assert np.abs(np.array([d["score"] for d in answer["data"]]) - expected).max() < 1e-5
        status, answer = post(f"{url}/v1/rerank", query="w7 [SEP] w9", documents=documents)
        assert status == 400 and "contains [SEP]" in answer["error"]["message"]
        status, answer = post(f"{url}/v1/embeddings", input="w5")
        assert status == 400 and "/v1/rerank" in answer["error"]["message"]


def test_a_classifier_tells_classes(tmp_path):
    names = {"0": "bad", "1": "so-so", "2": "good"}
    labels = {"id2label": names, "label2id": {name: int(i) for i, name in names.items()}}
    folder, model, encoder = cross_encoder(tmp_path, 3, **labels)
    with live(LoadedModel.load(folder)) as url:
        status, answer = post(f"{url}/classify", input=TEXTS[:2])
        assert status == 200, answer
        for text, item in zip(TEXTS, answer["data"], strict=False):
            powers = np.exp(logits(model, encoder, text))
            expected = powers / powers.sum()
            assert np.abs(np.array(item["probs"]) - expected).max() < 1e-5
            assert item["label"] == list(names.values())[int(expected.argmax())]
            assert item["num_classes"] == 3
        assert answer["usage"]["prompt_tokens"] == 5 + 3
        status, answer = post(f"{url}/v1/rerank", query="w7", documents=["w8"])
        assert status == 400 and "has 3 classes" in answer["error"]["message"]
        status, answer = post(f"{url}/v1/completions", prompt="hi")
        assert status == 400 and "POST /classify" in answer["error"]["message"]


def test_pythons_engine(tmp_path):
    save(tmp_path, CASES["bert"])
    encoder = tokenizer(tmp_path)
    with MLCEngine(compiled(tmp_path)) as engine:
        answer = engine.embeddings.create(input=TEXTS, dimensions=8)
        assert answer.usage.prompt_tokens == sum(len(encoder.encode(text).ids) for text in TEXTS)
        assert {len(item.embedding) for item in answer.data} == {8}
