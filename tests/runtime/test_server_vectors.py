"""/v1/embeddings, /score and /rerank of a live server; OpenAI's own client where it has a word."""

from __future__ import annotations

import json
import math
import socket
import time
import urllib.error
import urllib.request

import numpy as np
import openai
import pytest

from wherry.artifact.head import EmbeddingHead, ScoreHead
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers
from .fake_core import saying
from .live_server import live
from .vector_core import VectorCore, vector_of

HEAD = EmbeddingHead(prompts={"query": "the cat "})


@pytest.fixture
def make():
    """Builds models over VectorCore, and closes them."""
    models = []

    def build(head=HEAD, *, entries=("embed",), template=None, **core):
        tokenizer = Tokenizer(small_tokenizers.byte_level(), {"eos_token": "</s>"})
        scripted = VectorCore(saying([], 5), entries=entries, **core)
        loaded = LoadedModel(
            "small",
            scripted,
            SideFiles(tokenizer, ChatTemplate(template) if template else None, head=head),
            max_batch=4,
        )
        models.append(loaded)
        return loaded, scripted

    yield build
    for model in models:
        model.close()


def unit(x):
    return x / np.linalg.norm(x)


def expected(loaded, text):
    return unit(vector_of(loaded.tokenizer.encode(text)))


def post(url, **fields):
    request = urllib.request.Request(
        url, json.dumps(fields).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


class TestEmbeddings:
    def test_openais_client(self, make):
        """It asks for base64, and decodes it."""
        loaded, _ = make()
        with live(loaded) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="x") as client:
            answer = client.embeddings.create(model="small", input=["one", "two three"])
            assert [item.index for item in answer.data] == [0, 1]
            for item, text in zip(answer.data, ("one", "two three"), strict=True):
                assert np.allclose(item.embedding, expected(loaded, text), atol=1e-6)
            plain = client.embeddings.create(model="small", input="one", encoding_format="float")
            assert plain.data[0].embedding == answer.data[0].embedding
            short = client.embeddings.create(model="small", input="one", dimensions=3)
            full = vector_of(loaded.tokenizer.encode("one"))
            assert np.allclose(short.data[0].embedding, unit(full[:3]), atol=1e-6)
            tokens = loaded.tokenizer.encode("one")
            ids = client.embeddings.create(model="small", input=[tokens, tokens])
            assert ids.data[1].embedding == answer.data[0].embedding
            assert ids.usage.prompt_tokens == 2 * len(tokens)
            assert ids.object == "list" and ids.model == "small"

    def test_many_inputs_leave_the_queue_to_others(self, make):
        loaded, core = make()
        texts = [f"text {i}" for i in range(500)]
        with live(loaded, max_queue=8) as url:
            status, answer = post(f"{url}/v1/embeddings", input=texts)
        assert status == 200
        assert np.allclose(answer["data"][499]["embedding"], expected(loaded, texts[499]))
        assert core.most_at_once <= 8  # twice max_batch
        assert loaded.dispatcher.active == 0

    def test_refusals(self, make):
        loaded, _ = make()
        with live(loaded) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="x") as client:
            with pytest.raises(openai.BadRequestError, match="have 8") as e:
                client.embeddings.create(model="small", input="a", dimensions=9)
            assert e.value.param == "dimensions"
            with pytest.raises(openai.BadRequestError, match="at most 512 tokens") as e:
                client.embeddings.create(model="small", input=["a", "a " * 600])
            assert (e.value.code, e.value.param) == ("context_length_exceeded", "input[1]")
            with pytest.raises(openai.NotFoundError):
                client.embeddings.create(model="other", input="a")
            with pytest.raises(openai.BadRequestError, match="/v1/embeddings") as e:
                client.completions.create(model="small", prompt="a")
            assert e.value.code == "no_text"

    def test_a_model_without_the_entry_says_what_to_type(self, make):
        loaded, _ = make(None, entries=("forward",))
        with live(loaded) as url:
            status, answer = post(f"{url}/v1/embeddings", input="a")
        assert status == 400
        assert answer["error"]["code"] == "no_embeddings"
        assert "wherry compile MODEL" in answer["error"]["message"]

    def test_fields_of_no_effect_are_named(self, make):
        loaded, _ = make()
        with live(loaded) as url:
            request = urllib.request.Request(
                f"{url}/v1/embeddings",
                b'{"input": "a", "colour": 1, "user": "u"}',
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request) as answer:
                assert answer.headers["X-Wherry-Ignored"] == "colour"

    def test_a_failed_step_is_a_500(self, make):
        loaded, core = make()
        core.fail_with = "the device is gone"
        with live(loaded) as url:
            status, answer = post(f"{url}/v1/embeddings", input=["a", "b"])
            assert (status, answer["error"]["message"]) == (500, "the device is gone")
            assert post(f"{url}/v1/embeddings", input=["a", "b"])[0] == 200
        assert loaded.dispatcher.active == 0

    def test_a_client_that_goes_away_frees_its_request(self, make):
        loaded, core = make(step_seconds=0.02)
        body = json.dumps({"input": [f"text {i}" for i in range(2000)]})
        with live(loaded) as url:
            host, port = url.removeprefix("http://").split(":")
            head = (
                "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall((head + body).encode())
                end = time.monotonic() + 10
                while not core.added:
                    assert time.monotonic() < end
                    time.sleep(0.002)
            while loaded.dispatcher.active:
                assert time.monotonic() < end
                time.sleep(0.002)
            time.sleep(0.2)
            assert loaded.dispatcher.active == 0
            assert len(core.added) < 2000


class TestScores:
    @pytest.mark.parametrize("path", ["/score", "/v1/score"])
    def test_cosines(self, make, path):
        loaded, _ = make()
        with live(loaded) as url:
            _, one = post(url + path, model="small", text_1="a", text_2=["b", "c"])
            _, pairs = post(url + path, text_1=["a", "b"], text_2=["b", {"text": "c"}])
            assert post(url + path, text_1=["a", "b"], text_2=["b", "c", "d"])[0] == 400
            assert post(url + path, text_1="a")[0] == 400
        assert one["object"] == "list" and one["data"][1]["object"] == "score"
        cosine = lambda a, b: float(expected(loaded, a) @ expected(loaded, b))  # noqa: E731
        assert [d["score"] for d in one["data"]] == pytest.approx([cosine("a", b) for b in "bc"])
        assert pairs["data"][1]["score"] == pytest.approx(cosine("b", "c"))
        assert one["usage"]["prompt_tokens"] == one["usage"]["total_tokens"] == 3

    @pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
    def test_ranking_by_embeddings(self, make, path):
        """The query has the model's prompt for queries."""
        loaded, _ = make()
        texts = [f"text {i}" for i in range(9)]
        with live(loaded) as url:
            _, answer = post(url + path, model="small", query="q", documents=texts, top_n=3)
            _, bare = post(url + path, query="q", documents=texts, return_documents=False)
        query = expected(loaded, "the cat q")
        scores = [float(query @ expected(loaded, t)) for t in texts]
        order = sorted(range(9), key=lambda i: -scores[i])
        assert [r["index"] for r in answer["results"]] == order[:3]
        assert [r["index"] for r in bare["results"]] == order
        assert answer["results"][0]["document"] == {"text": texts[order[0]]}
        assert "document" not in bare["results"][0]
        relevance = [r["relevance_score"] for r in bare["results"]]
        assert relevance == pytest.approx([scores[i] for i in order])

    def test_a_reranker(self, make):
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        head = ScoreHead(yes=20, no=10, prompts={"i": "judge"}, default_prompt="i")
        loaded, core = make(head, entries=("forward",), template=template)
        with live(loaded) as url:
            _, answer = post(f"{url}/rerank", query="q", documents=["a", "b"])
            prompts = [loaded.tokenizer.decode(ids) for ids, _ in core.added]
            assert prompts[::2] == prompts[1::2]
            assert prompts[::2] == [f"<system>judge<query>q<document>{t}" for t in "ab"]
            post(f"{url}/rerank", query="q", documents=["a"], instruction="rate")
            assert loaded.tokenizer.decode(core.added[-1][0]).startswith("<system>rate")
            assert post(f"{url}/v1/embeddings", input="a")[1]["error"]["code"] == "no_embeddings"
        value = 1 / (1 + math.exp(-1 / 10 + 1 / 20))
        assert answer["results"][0]["relevance_score"] == pytest.approx(value)
        read = sum(len(ids) for ids, _ in core.added[:4:2])
        assert answer["usage"] == {"prompt_tokens": read, "total_tokens": read}

    def test_long_documents_are_cut_where_the_peer_cuts_them(self, make):
        """Cohere's and Jina's paths cut; vLLM's and TEI's answer 400, and name the field."""
        loaded, core = make(EmbeddingHead())
        fields = {"query": "q", "documents": ["a", "cat " * 3000]}
        with live(loaded) as url:
            for path in ("/v1/rerank", "/v2/rerank"):
                assert post(url + path, **fields)[0] == 200
                assert len(core.added[-1][0]) == 512
                assert post(url + path, **fields, truncate=False)[0] == 400
            for path in ("/rerank", "/score"):
                sent = dict(fields)
                if path == "/score":
                    sent["text_1"] = sent.pop("query")
                status, answer = post(url + path, **sent)
                assert (status, answer["error"]["param"]) == (400, "documents[1]")
                assert '"truncate": true' in answer["error"]["message"]
                assert post(url + path, **sent, truncate_prompt_tokens=40)[0] == 200
                assert len(core.added[-1][0]) == 40
                assert post(url + path, **sent, max_tokens_per_doc=30)[0] == 200
                assert len(core.added[-1][0]) == 30

    def test_a_rerankers_prompt_stays_complete(self, make):
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}END"
        loaded, core = make(ScoreHead(yes=20, no=10), entries=("forward",), template=template)
        with live(loaded) as url:
            status, answer = post(f"{url}/v1/rerank", query="q", documents=["cat " * 3000])
            assert status == 200, answer
            prompt = loaded.tokenizer.decode(core.added[-1][0])
            assert prompt.startswith("<query>q<document>cat cat") and prompt.endswith("END")
            status, answer = post(f"{url}/v1/rerank", query="cat " * 3000, documents=["a"])
            assert (status, answer["error"]["param"]) == (400, "query")

    def test_a_model_that_writes_text_scores_nothing(self, make):
        loaded, _ = make(None, entries=("forward", "embed"))
        with live(loaded) as url:
            for path in ("/score", "/rerank"):
                fields = {"query": "a"} if path == "/rerank" else {"text_1": "a"}
                status, answer = post(url + path, documents=["b"], **fields)
                assert status == 400
                assert answer["error"]["code"] == "no_scores"
            assert post(f"{url}/v1/embeddings", input="a")[0] == 200


class TestOllama:
    def test_embed(self, make):
        loaded, _ = make()
        with live(loaded) as url:
            _, answer = post(f"{url}/api/embed", model="small", input=["one", "two"])
            _, one = post(f"{url}/api/embed", model="small", input="one", dimensions=3)
            _, old = post(f"{url}/api/embeddings", model="small", prompt="two")
        assert answer.keys() == {
            "model", "embeddings", "total_duration", "load_duration", "prompt_eval_count"
        }  # fmt: skip
        assert np.allclose(answer["embeddings"][1], expected(loaded, "two"), atol=1e-6)
        assert answer["prompt_eval_count"] == sum(
            map(len, map(loaded.tokenizer.encode, ("one", "two")))
        )
        assert np.shape(one["embeddings"]) == (1, 3)
        assert old == {"embedding": answer["embeddings"][1]}

    def test_nothing_to_embed_loads_the_model(self, make):
        loaded, core = make()
        with live(loaded) as url:
            for given in ({}, {"input": ""}, {"input": []}):
                assert post(f"{url}/api/embed", model="small", **given)[1]["embeddings"] == []
            assert post(f"{url}/api/embeddings", model="small")[1] == {"embedding": []}
        assert core.added == []

    def test_a_text_that_is_too_long_is_cut_by_default(self, make):
        loaded, core = make()
        text = "cat " * 3000
        with live(loaded) as url:
            status, answer = post(f"{url}/api/embed", model="small", input=[text, "one"])
            assert status == 200, answer
            assert answer["prompt_eval_count"] > 512
            ids = loaded.tokenizer.encode(text)
            assert core.added[0][0] == ids[:512]
            status, answer = post(f"{url}/api/embed", model="small", input=text, truncate=False)
            assert status == 400 and "at most 512 tokens" in answer["error"]
            assert post(f"{url}/api/embed", model="small", input=7)[0] == 400
