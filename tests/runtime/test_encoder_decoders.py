"""A tiny T5 behind the server: completions, whose prompts are sources, against transformers."""

from __future__ import annotations

import json

import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors

from wherry.compiler.api import Limits, ensure_artifact
from wherry.runtime import MLCEngine, RequestError

from ..app.answers import answered, fixed, refused
from ..app.app import App
from ..models.encoder_decoders import CASES, save
from .live_server import live
from .test_encoders import post

pytestmark = pytest.mark.cpu
PAD, EOS = 0, 1
PROMPTS = ["w7 w9 w11", " ".join(f"w{i}" for i in range(30, 110))]


def tokenizer(folder):
    """T5's kind: Unigram, Metaspace, and the end of the text after the prompt."""
    pieces = ["<pad>", "</s>", "<unk>", *(f"▁w{i}" for i in range(3, 320))]
    result = tokenizers.Tokenizer(
        models.Unigram([(piece, -1.0) for piece in pieces], unk_id=2, byte_fallback=False)
    )
    result.pre_tokenizer, result.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    result.add_special_tokens(["<pad>", "</s>", "<unk>"])
    result.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", EOS)]
    )
    result.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "</s>", "chat_template": "{{ messages[0].content }}"})
    )
    return result


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(URL of the server, the engine, what transformers writes for a prompt)."""
    folder = tmp_path_factory.mktemp("served") / "t5"
    model, encoder = save(folder, CASES["t5"]), tokenizer(folder)
    limits = Limits(context=128, max_batch=4, prefill_chunk=128)
    compiled = ensure_artifact(str(folder), target="cpu", quant="q0f32", limits=limits)

    def written(prompt, tokens=64):
        ids = torch.tensor([encoder.encode(prompt).ids])
        generated = model.generate(ids, max_new_tokens=tokens, do_sample=False, num_beams=1)
        return encoder.decode(generated[0].tolist())

    with MLCEngine(compiled) as engine, live(engine) as url:
        yield url, engine, written


def test_completions(served):
    url, _, written = served
    fields = {"model": "t5", "prompt": PROMPTS, "max_tokens": 64, "temperature": 0}
    status, answer = post(f"{url}/v1/completions", **fields)
    assert status == 200, answer
    texts = [choice["text"] for choice in answer["choices"]]
    assert texts == [written(prompt) for prompt in PROMPTS]
    assert len(set(texts[0].split())) > 3
    assert answer["usage"]["prompt_tokens"] == 4 + 81  # with the end of the text
    # ids are the source as it is
    ids = [7, 9, 11, EOS]
    status, same = post(f"{url}/v1/completions", **{**fields, "prompt": ids})
    assert same["choices"][0]["text"] == texts[0]


def test_embeddings_are_not_advised_to_compile_again(served):
    status, answer = post(f"{served[0]}/v1/embeddings", model="t5", input="w7")
    assert status == 400 and "Compile" not in answer["error"]["message"]
    assert "reads a source and writes a text" in answer["error"]["message"]


def test_the_engine_streams(served):
    _, engine, written = served
    chunks = engine.completions.create(
        prompt=PROMPTS[0], max_tokens=20, temperature=0, stream=True, n=2
    )
    texts = ["", ""]
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == [written(PROMPTS[0], 20)] * 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"echo": True}, "echo is not supported by this model: its encoder reads the prompt"),
        ({"suffix": "w5"}, "suffix is not supported by this model"),
        ({"prompt_logprobs": 1}, "prompt_logprobs is not supported by this model"),
        ({"prompt": [5] * 129}, "reads sources of up to 128 tokens; prompt has 129"),
        ({"max_tokens": 128}, "writes up to 127 tokens; max_tokens is 128"),
    ],
)
def test_what_is_refused(served, fields, message):
    _, engine, _ = served
    with pytest.raises(RequestError, match=message):
        engine.completions.create(**{"prompt": "w7", **fields})


def test_a_chat_is_refused(served):
    url, *_ = served
    messages = [{"role": "user", "content": "w7"}]
    status, answer = post(f"{url}/v1/chat/completions", model="t5", messages=messages)
    assert status == 400
    assert "reads a source, no chat. Use completions" in answer["error"]["message"]


def test_apps_answer_as_the_engine(served):
    """Over the C ABI of apps: texts, ids, choices, and what is refused."""
    _, engine, _ = served
    app = App(engine.loaded.origin.folder)
    try:
        greedy = {"temperature": 0, "max_tokens": 20}
        for prompt in (PROMPTS[0], PROMPTS, [7, 9, 11, EOS]):
            request = {"prompt": prompt, "n": 2, "logprobs": 1, **greedy}
            assert fixed(app.ask(**request)) == answered(engine, request)
        body = {"prompt": "w7", "temperature": 0, "max_tokens": None}
        assert fixed(app.ask(**body)) == answered(engine, body)
        for fields in ({"echo": True}, {"suffix": "w5"}, {"prompt_logprobs": 1},
                       {"prompt": [5] * 129}, {"max_tokens": 128}):  # fmt: skip
            request = {"prompt": "w7", **fields}
            assert app.ask(**request) == refused(engine, request)
        chat = {"messages": [{"role": "user", "content": "w7"}]}
        assert app.ask(**chat)["error"]["code"] == "no_chat_template"
    finally:
        app.close()
