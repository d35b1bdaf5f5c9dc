"""Exports the same metrics under vLLM's names, for its dashboards (vLLM's docs/usage/metrics)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client.core import Metric

Labels = dict[str, str]


def _of_model(labels: Labels) -> Labels:
    """Return a metric's labels with vLLM's label `engine`, which is the rank of a process."""
    rest = {name: value for name, value in labels.items() if name != "model"}
    return {"model_name": labels["model"], "engine": "0", **rest}


def _of_outcome(labels: Labels) -> Labels:
    outcome = labels["outcome"]
    reasons = {"stop": "stop", "tool_calls": "stop", "length": "length", "client_gone": "abort"}
    return {
        **_of_model({"model": labels["model"]}),
        "finished_reason": reasons.get(outcome, "error"),
    }


def _of_http(labels: Labels) -> Labels:
    status = f"{labels['status'][0]}xx"
    return {"method": labels["method"], "handler": labels["path"], "status": status}


class _Alias(NamedTuple):
    name: str
    labels: Callable[[Labels], Labels] = _of_model


_EACH = "wherry_time_per_output_token_seconds"
NAMES: dict[str, tuple[_Alias, ...]] = {
    "wherry_requests_running": (_Alias("vllm:num_requests_running"),),
    "wherry_requests_waiting": (_Alias("vllm:num_requests_waiting"),),
    "wherry_kv_usage_ratio": (
        _Alias("vllm:kv_cache_usage_perc"),
        _Alias("vllm:gpu_cache_usage_perc"),  # vLLM's name before version 0.10
    ),
    "wherry_engine_prompt_tokens": (
        _Alias("vllm:prompt_tokens"),
        _Alias("vllm:prefix_cache_queries"),  # vLLM counts tokens here, too
    ),
    "wherry_engine_cached_tokens": (_Alias("vllm:prefix_cache_hits"),),
    "wherry_engine_decode_tokens": (_Alias("vllm:generation_tokens"),),
    "wherry_preemptions": (_Alias("vllm:num_preemptions"),),
    "wherry_draft_tokens": (_Alias("vllm:spec_decode_num_draft_tokens"),),
    "wherry_accepted_draft_tokens": (_Alias("vllm:spec_decode_num_accepted_tokens"),),
    "wherry_requests": (_Alias("vllm:request_success", _of_outcome),),
    "wherry_time_to_first_token_seconds": (_Alias("vllm:time_to_first_token_seconds"),),
    # vLLM observes each token in the last two histograms; here they have the mean of a request.
    _EACH: (
        _Alias("vllm:request_time_per_output_token_seconds"),
        _Alias("vllm:inter_token_latency_seconds"),
        _Alias("vllm:time_per_output_token_seconds"),
    ),
    "wherry_request_seconds": (_Alias("vllm:e2e_request_latency_seconds"),),
    "wherry_queue_seconds": (_Alias("vllm:request_queue_time_seconds"),),
    "wherry_prefill_seconds": (_Alias("vllm:request_prefill_time_seconds"),),
    "wherry_decode_seconds": (_Alias("vllm:request_decode_time_seconds"),),
    "wherry_inference_seconds": (_Alias("vllm:request_inference_time_seconds"),),
    "wherry_longest_output_tokens": (_Alias("vllm:request_max_num_generation_tokens"),),
    "wherry_max_tokens": (_Alias("vllm:request_params_max_tokens"),),
    "wherry_choices": (_Alias("vllm:request_params_n"),),
    "wherry_prompt_tokens": (_Alias("vllm:request_prompt_tokens"),),
    "wherry_output_tokens": (_Alias("vllm:request_generation_tokens"),),
    "wherry_http_requests": (_Alias("http_requests", _of_http),),
}


def also_as_vllm(metric: Metric) -> Iterator[Metric]:
    """Yield a metric under vLLM's names; series that become equal are added."""
    for alias in NAMES.get(metric.name, ()):
        sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for sample in metric.samples:
            name = alias.name + sample.name.removeprefix(metric.name)
            bucket = {"le": sample.labels["le"]} if "le" in sample.labels else {}
            labels = alias.labels({n: v for n, v in sample.labels.items() if n != "le"}) | bucket
            key = name, tuple(labels.items())
            sums[key] = sums.get(key, 0.0) + sample.value
        renamed = Metric(alias.name, metric.documentation, metric.type)
        for (name, pairs), value in sums.items():
            renamed.add_sample(name, dict(pairs), value)
        yield renamed
