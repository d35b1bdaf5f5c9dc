"""GET /metrics: what is counted, its names, its labels."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from wherry.runtime import MLCEngine, create_app

from .asking import CHAT, COMPLETIONS, HI, bearer, client_of


def samples(client, **headers):
    """(name, labels without those that are equal everywhere) -> value."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in text_string_to_metric_families(answer.text)
        for s in family.samples
    }


def value(metrics, name, **labels):
    return metrics[name, frozenset(labels.items())]


@pytest.fixture
def client(make):
    return client_of(create_app(MLCEngine.of(make("one two")), model_name="m"))


def test_requests_are_counted_at_their_ends(client):
    assert client.post(CHAT, json=HI).status_code == 200
    assert client.post(CHAT, json={**HI, "stream": True}).status_code == 200
    assert client.post(COMPLETIONS, json={"prompt": "a", "max_tokens": 2}).status_code == 200
    assert client.post(CHAT, json={}).status_code == 400
    metrics = samples(client)
    http = "wherry_http_requests_total"
    assert value(metrics, http, method="POST", path=CHAT, status="200") == 2
    assert value(metrics, http, method="POST", path=CHAT, status="400") == 1
    assert value(metrics, "wherry_requests_total", model="m", outcome="stop") == 2
    assert value(metrics, "wherry_requests_total", model="m", outcome="length") == 1
    for name in ("time_to_first_token_seconds", "request_seconds", "queue_seconds"):
        assert value(metrics, f"wherry_{name}_count", model="m") == 3
    usage = client.post(CHAT, json=HI).json()["usage"]
    again = samples(client)
    for name, tokens in (("prompt", "prompt_tokens"), ("output", "completion_tokens")):
        key = "wherry_" + name + "_tokens_sum"
        assert value(again, key, model="m") - value(metrics, key, model="m") == usage[tokens]


def test_the_engine_is_looked_at_now(client):
    client.post(COMPLETIONS, json={"prompt": "a", "max_tokens": 3})
    metrics = samples(client)
    assert value(metrics, "wherry_engine_decode_tokens_total", model="m") == 3
    assert value(metrics, "wherry_outputs_finished_total", model="m") == 1
    assert value(metrics, "wherry_kv_pages", model="m") == 1024
    assert value(metrics, "wherry_requests_running", model="m") == 0
    assert value(metrics, "wherry_engine_up", model="m") == 1
    assert value(metrics, "process_resident_memory_bytes") > 2**20


def test_dashboards_of_vllm_find_their_names(client):
    client.post(COMPLETIONS, json={"prompt": "a", "max_tokens": 3})
    client.post(CHAT, json=HI)
    metrics = samples(client)
    of = {"model_name": "m", "engine": "0"}
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
        assert value(metrics, f"vllm:{name}", **of) == 0
    total = value(metrics, "wherry_engine_decode_tokens_total", model="m")
    assert value(metrics, "vllm:generation_tokens_total", **of) == total > 3
    for name in ("prompt_tokens", "prefix_cache_queries", "prefix_cache_hits", "num_preemptions"):
        assert value(metrics, f"vllm:{name}_total", **of) >= 0
    assert value(metrics, "vllm:request_success_total", **of, finished_reason="stop") == 1
    assert value(metrics, "vllm:request_success_total", **of, finished_reason="length") == 1
    for name in (
        "time_to_first_token_seconds",
        "time_per_output_token_seconds",
        "inter_token_latency_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
        "request_prompt_tokens",
        "request_generation_tokens",
        "request_inference_time_seconds",
        "request_max_num_generation_tokens",
        "request_params_max_tokens",
        "request_params_n",
    ):
        assert value(metrics, f"vllm:{name}_bucket", **of, le="+Inf") == 2
        assert value(metrics, f"vllm:{name}_count", **of) == 2
    longest = value(metrics, "vllm:request_max_num_generation_tokens_sum", **of)
    assert longest == value(metrics, "vllm:request_generation_tokens_sum", **of)  # n is 1
    assert value(metrics, "vllm:request_params_n_sum", **of) == 2
    http = {"method": "POST", "handler": CHAT}
    assert value(metrics, "http_requests_total", **http, status="2xx") == 1


def test_every_metric_has_a_type_and_no_creation_time(client):
    client.post(CHAT, json=HI)
    families = list(text_string_to_metric_families(client.get("/metrics").text))
    assert len({f.name for f in families}) == len(families)
    assert all(f.type != "unknown" and f.documentation for f in families)
    assert not [s for f in families for s in f.samples if s.name.endswith("_created")]


def test_openmetrics_on_request(client):
    client.post(CHAT, json=HI)
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_strangers_cannot_make_series(client):
    for i in range(20):
        client.get(f"/nowhere/{i}")
        client.post(CHAT, json={**HI, "model": f"x{i}"})
        client.get(f"/v1/models/y{i}")
        client.request(f"M{i}", "/")
    metrics = samples(client)
    paths = {dict(labels).get("path") for _, labels in metrics} - {None}
    assert paths <= {"other", CHAT, "/v1/models/{name:path}", "/", "/metrics"}
    models = {dict(labels).get("model") for _, labels in metrics} - {None}
    assert models == {"m"}
    assert (
        value(metrics, "wherry_http_requests_total", method="GET", path="other", status="404") == 20
    )


def test_each_app_has_its_own(make):
    first, second = (client_of(create_app(MLCEngine.of(make()), model_name="m")) for _ in "ab")
    first.post(CHAT, json=HI)
    assert value(samples(first), "wherry_request_seconds_count", model="m") == 1
    assert ("wherry_request_seconds_count", frozenset({("model", "m")})) not in samples(second)


def test_metrics_ask_for_the_key_and_count_by_its_name(make):
    client = client_of(create_app(MLCEngine.of(make()), api_key="k"))
    assert client.get("/metrics").status_code == 401
    client.post(CHAT, json=HI)
    usage = client.post(CHAT, json=HI, headers=bearer("k")).json()["usage"]
    metrics = samples(client, **bearer("k"))
    assert value(metrics, "wherry_key_tokens_total", key="default") == usage["total_tokens"]
    http = "wherry_http_requests_total"
    assert value(metrics, http, method="POST", path=CHAT, status="401") == 1


def test_tokens_cost_no_observation(make, monkeypatch):
    """The watchers are called once a request, however long its answer."""
    from wherry.runtime.server.observing.metrics import RequestMetrics

    calls = []
    real = RequestMetrics.__call__
    monkeypatch.setattr(
        RequestMetrics, "__call__", lambda self, record: (calls.append(record), real(self, record))
    )
    client = client_of(create_app(MLCEngine.of(make(None))))
    client.post(COMPLETIONS, json={"prompt": "a", "max_tokens": 300, "stream": True})
    assert len(calls) == 1
    assert calls[0].running.totals.sampled == 300


def test_a_scrape_does_not_wait_for_a_step(make):
    stepping, go_on = threading.Event(), threading.Event()

    def script(prompt, params, n):
        stepping.set()
        assert go_on.wait(60)
        return 7

    model = make(script=script)
    client = client_of(create_app(MLCEngine.of(model), model_name="m"))
    # the fake core steps on the thread that brings a stream's first message
    with ThreadPoolExecutor() as pool:
        pool.submit(MLCEngine.of(model).completions.create, prompt="a", max_tokens=1)
        try:
            assert stepping.wait(60)
            assert value(samples(client), "wherry_requests_active", model="m") == 1
        finally:
            go_on.set()
