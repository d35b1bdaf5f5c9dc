"""Two replicas under Ray Serve: streams, prefixes, deaths. Installs Ray into a venv of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .ray_cluster import ROOT, cluster, make_venv, replica_of

pytestmark = pytest.mark.nightly

CONFIG = """
proxy_location: HeadOnly
http_options: {host: 127.0.0.1, port: PORT}
applications:
  - name: wherry
    route_prefix: /
    import_path: wherry.serve_ray:app
    args: {model: demo, load: {context: 1024, max_batch: 16}}
    deployments:
      - name: Engine
        num_replicas: 2
        ray_actor_options: {num_cpus: 0.5}
        health_check_period_s: 1
        health_check_timeout_s: 5
      - name: Ingress
        num_replicas: 2
  - name: small
    route_prefix: /small
    import_path: wherry.serve_ray:app
    args: {model: demo, model_name: little, load: {context: 1024, max_batch: 2}}
    runtime_env: {env_vars: {WHERRY_API_KEY: secret}}
    deployments:
      - name: Engine
        ray_actor_options: {num_cpus: 0.25}
        max_ongoing_requests: 2
        max_queued_requests: 4
        autoscaling_config:
          {min_replicas: 1, max_replicas: 2, target_ongoing_requests: 1, upscale_delay_s: 1}
"""
CHAT = "/v1/chat/completions"
# Outputs of one request: some seconds of work while its client waits.
LONG = {"n": 16, "max_tokens": 900, "ignore_eos": True, "temperature": 1.0, "seed": 5}

# As many outputs as take a minute where two are decoded together.
CROWD = {**LONG, "n": 64, "stream": True}
CHECK = """
import sys, yaml
from ray.serve.schema import ServeDeploySchema
from wherry import serve_ray
for path in sys.argv[1:]:
    config = yaml.safe_load(open(path))
    if config.get("kind") == "RayService":
        cluster = config["spec"]["rayClusterConfig"]
        for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
            for container in group["template"]["spec"]["containers"]:
                assert container["image"] and container["resources"]
        config = yaml.safe_load(config["spec"]["serveConfigV2"])
    (app,) = ServeDeploySchema.model_validate(config).applications
    assert app.import_path == "wherry.serve_ray:app"
    serve_ray.Options(**app.args)
    assert {d.name for d in app.deployments} == {"Engine", "Ingress"}
    print("valid")
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return make_venv(tmp_path_factory.mktemp("venv"))


@pytest.fixture(scope="module")
def served(programs):
    """In a short folder: paths of Ray's sockets, which lie in it, may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        with cluster(programs, Path(folder), CONFIG) as running:
            yield running


def chat(text, *more, **fields):
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "content": t} for i, t in enumerate((text, *more))]
    return {"messages": messages, "max_tokens": 16, "temperature": 0, **fields}


def story(i: int) -> str:
    return f"Story {i}. The {i} foxes live in the wood. " + "They sleep until the evening. " * 8


def events(stream):
    """The JSON of a stream's events, as they come; the last word is not JSON and left out."""
    for line in stream:
        if line.startswith(b"data: {"):
            yield json.loads(line.removeprefix(b"data: "))


def both(served):
    """The replicas that answer by now."""
    replicas = {served.ask("/health")[0] for _ in range(20)}
    return replicas if len(replicas) == 2 else None


def test_the_surface_is_the_servers(served):
    assert served.ask("/v1/models")[1]["data"][0]["id"] == "demo"
    assert served.ask(CHAT, chat("Hello!"))[1]["choices"][0]["finish_reason"] in ("stop", "length")
    with served.open(CHAT, chat("Hello!", stream=True)) as answer:
        assert len(answer.headers.get_all("X-Request-Id")) == 1
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.read().endswith(b"data: [DONE]\n\n")
    for path, body, status in (
        (CHAT, {"messages": []}, 400),
        (CHAT, {**chat("Hello!"), "model": "another"}, 404),
        ("/v1/nothing", None, 404),
    ):
        with pytest.raises(OSError) as refused:
            served.open(path, body)
        assert refused.value.status == status
        assert json.load(refused.value)["error"]["message"]


def test_a_second_turn_goes_where_the_first_is_cached(served):
    served.wait(lambda: both(served), 120, "two replicas")
    first = {i: served.ask(CHAT, chat(story(i))) for i in range(8)}
    assert len({replica for replica, _ in first.values()}) == 2, "chance has never asked the other"
    time.sleep(12)  # half of the second turns come to the other ingress: replicas tell it by now
    for i, (replica, answer) in first.items():
        said = answer["choices"][0]["message"]["content"]
        again, second = served.ask(CHAT, chat(story(i), said, "And then?"))
        assert again == replica
        cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached > 0.8 * answer["usage"]["prompt_tokens"]


def test_a_salt_has_prefixes_of_its_own(served):
    for salt in ("a", "b"):
        _, answer = served.ask(CHAT, chat(story(100), cache_salt=salt))
        assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_kept_response_is_continued_by_who_keeps_it(served):
    keeper, first = served.ask("/v1/responses", {"input": "Hello!", "max_output_tokens": 16})
    time.sleep(12)  # as above: both ingresses know
    for _ in range(6):
        follow = {"input": "And?", "previous_response_id": first["id"], "max_output_tokens": 16}
        assert served.ask("/v1/responses", follow)[0] == keeper
        assert served.ask(f"/v1/responses/{first['id']}")[0] == keeper


def test_a_client_that_leaves_frees_its_request(served):
    with served.open(CHAT, chat(story(200), stream=True, **{**LONG, "n": 128})) as stream:
        next(events(stream))

    def idle():  # while it is busy, the other is asked
        replica, stats = served.ask("/stats")
        return replica == replica_of(stream) and not stats["requests"]["active"] and stats

    stats = served.wait(idle, 20, "free of the request")
    assert stats["tokens"]["decode"] < 128 * 900 / 2


def test_one_replica_is_killed_in_mid_stream(served):
    served.wait(lambda: both(served), 120, "two replicas")
    streams = {}
    for i in range(300, 340):  # until each replica has one
        stream = served.open(CHAT, chat(story(i), stream=True, **LONG))
        if replica_of(stream) in streams:
            stream.close()
        else:
            streams[replica_of(stream)] = i, stream
        if len(streams) == 2:
            break
    (victim, (_, cut)), (survivor, (i, complete)) = streams.items()
    chunks = events(complete)
    begun = [next(chunks)]
    os.kill(served.process_of(victim), signal.SIGKILL)

    last = [*events(cut)][-1]  # the stream says why it ends
    assert last["error"]["code"] == "replica_lost"
    for _ in range(5):  # new requests are answered meanwhile
        assert served.ask(CHAT, chat("Hello!"))[0] == survivor
    text = texts([*begun, *chunks])
    alone = served.ask(CHAT, chat(story(i), **LONG))[1]["choices"]
    assert text == {c["index"]: c["message"]["content"] for c in alone}

    now = served.wait(lambda: both(served), 120, "two replicas again")
    assert survivor in now and victim not in now


def test_a_replica_that_does_not_move_is_replaced(served):
    before = served.wait(lambda: both(served), 120, "two replicas")
    stopped = min(before)
    os.kill(served.process_of(stopped), signal.SIGSTOP)

    def replaced():
        try:
            replicas = {served.ask("/health", timeout=20)[0] for _ in range(10)}
        except OSError:
            return None
        return stopped not in replicas and len(replicas) == 2

    served.wait(replaced, 180, "two replicas that move")


def test_one_of_two_ingresses_is_killed(served):
    """Its streams break and its other requests get Ray's 500; the other's clients see nothing."""
    served.wait(lambda: both(served), 120, "two replicas")
    before = served.wait(lambda: ingresses(served), 120, "two ingresses")
    long = {**LONG, "n": 1}
    streams = [served.open(CHAT, chat(story(i), stream=True, **long)) for i in range(400, 412)]
    with ThreadPoolExecutor(16) as clients:
        ends = [clients.submit(end_of_stream, stream) for stream in streams]
        others = [clients.submit(end_of, served, chat(story(i), **long)) for i in range(412, 416)]
        time.sleep(1)
        assert not any(future.done() for future in (*ends, *others))
        os.kill(min(before), signal.SIGKILL)
        later = Counter(end_of(served, chat(story(i))) for i in range(20))
        stream_ends, other_ends = (Counter(f.result() for f in each) for each in (ends, others))
    print(f"streams {dict(stream_ends)}, others {dict(other_ends)}, later {dict(later)}")
    assert set(stream_ends) == {"complete", "broken"}
    assert set(other_ends) <= {"complete", "500 text/plain"}
    assert set(later) == {"complete"}
    served.wait(lambda: ingresses(served), 120, "two ingresses again")


def ingresses(served):
    """The processes of both ingresses, once there are two."""
    processes = served.processes("wherry_Ingress")
    return processes if len(processes) == 2 else None


def end_of_stream(stream) -> str:
    """How a stream that has begun ends for its client."""
    with stream:
        try:
            data = stream.read()
        except http.client.IncompleteRead:
            return "broken"
    assert data.endswith(b"data: [DONE]\n\n")
    return "complete"


def end_of(served, body) -> str:
    """How a request ends for its client."""
    try:
        served.ask(CHAT, body)
    except urllib.error.HTTPError as e:
        return f"{e.status} {e.headers.get_content_type()}"
    return "complete"


def texts(chunks) -> dict[int, str]:
    """The text of each output of a stream."""
    text_of: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            index, delta = choice["index"], choice["delta"].get("content") or ""
            text_of[index] = text_of.get(index, "") + delta
    return text_of


def test_an_application_below_a_prefix_asks_for_its_key(served):
    with pytest.raises(OSError) as refused:
        served.open("/small/v1/models")
    assert refused.value.status == 401
    with served.open("/small/v1/models", key="secret") as answer:
        assert json.load(answer)["data"][0]["id"] == "little"
    assert served.ask("/small/health")[1] == {"status": "ok"}


def test_a_long_queue_is_refused_and_starts_a_replica(served):
    ask = {"prompt": "Once", **LONG, "n": 8}
    replicas, refused = set(), []

    def one(_):
        try:
            with served.open("/small/v1/completions", ask, key="secret") as answer:
                replicas.add(replica_of(answer))
        except urllib.error.HTTPError as e:
            assert (e.status, e.headers["Retry-After"]) == (429, "1")
            refused.append(json.load(e)["error"]["code"])

    end = time.monotonic() + 120
    with ThreadPoolExecutor(12) as clients:
        while len(replicas) < 2:
            assert time.monotonic() < end, served.log[-4000:]
            list(clients.map(one, range(12)))
    assert set(refused) == {"queue_full"}


def test_a_request_without_a_byte_moves_to_another_replica(served):
    prompt = {"prompt": story(500)}
    with (
        served.open("/small/v1/completions", prompt | CROWD, key="secret") as crowd,
        ThreadPoolExecutor(1) as client,
    ):
        chunks = events(crowd)
        next(chunks)
        waiting = client.submit(served.ask, "/small/v1/completions", prompt, key="secret")
        time.sleep(2)
        assert not waiting.done()  # it was sent where its prefix is, and waits for the crowd
        os.kill(served.process_of(replica_of(crowd)), signal.SIGKILL)
        assert [*chunks][-1]["error"]["code"] == "replica_lost"
        replica, answer = waiting.result(timeout=120)
    assert replica != replica_of(crowd)
    assert answer["choices"][0]["text"]


def test_the_examples_are_what_ray_accepts(programs):
    files = [ROOT / "examples/ray/serve.yaml", ROOT / "examples/kubernetes/rayservice.yaml"]
    checked = subprocess.run(
        [programs / "python", "-c", CHECK, *files], capture_output=True, text=True
    )
    assert checked.stdout.split() == ["valid", "valid"], checked.stderr
