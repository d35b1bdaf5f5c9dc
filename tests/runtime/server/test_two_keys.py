"""One key's costly schemas, and what the owner of another key sees of them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ..served import served
from .test_keys import ANN, BOB, entry, file_of

SERVE = """
from tests.runtime.conftest import make_model
from tests.runtime.test_structured_output import Obedient
from wherry.runtime import MLCEngine, serve

class Either(Obedient):
    def __call__(self, prompt, params, n):
        return super().__call__(prompt, params, n) if params.grammar else 7

model = make_model(script=Either())
serve(MLCEngine.of(model), port=0, keys={keys!r}, on_ready=lambda url: print(url, flush=True))
"""
CHAT = "/v1/chat/completions"
SAID = {"messages": [{"role": "user", "content": "go"}], "max_tokens": 4}
WORST = 0.2  # seconds that a plain chat may wait on a machine that does nothing else


@pytest.fixture
def server(tmp_path):
    keys = file_of(tmp_path, "keys:\n" + entry("ann", ANN) + entry("bob", BOB))
    with served(tmp_path, script=SERVE.format(keys=str(keys))) as running:
        yield running


def ask(server, key, **fields):
    """Status, body and seconds of a chat."""
    begin = time.monotonic()
    body = json.dumps({**SAID, **fields}).encode()
    status, answer = server.post(CHAT, body, Authorization=f"Bearer {key}")
    return status, answer, time.monotonic() - begin


def costly(mark: str) -> dict[str, object]:
    """A schema that a compiler takes seconds for; another one for another mark."""
    patterns = {f"^{mark}{i}b*$": {"type": "string"} for i in range(300)}
    schema = {"type": "object", "patternProperties": patterns}
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


@pytest.mark.nightly
def test_schemas_of_one_key_stop_no_other(server):
    """Before: plain chats waited 36.5 s, and the other key's expression got a 429.

    Now, on 2 cores that others kept at a load of 9: at most 0.10 s of 2,867 chats (alone 0.01 s).
    The bound allows for such a machine twice what a chat takes there without the attack.
    """
    assert ask(server, BOB, guided_regex="Hel+o!?")[0] == 200  # the probe has started
    alone = max(ask(server, BOB)[2] for _ in range(20))
    with ThreadPoolExecutor(13) as pool:
        attack = [pool.submit(ask, server, ANN, **costly(chr(97 + i))) for i in range(12)]
        time.sleep(0.5)
        own = pool.submit(ask, server, BOB, guided_regex="Hel*o!?")
        waits = []
        while not own.done() or len(waits) < 100:
            status, answer, seconds = ask(server, BOB)
            assert status == 200, answer
            waits.append(seconds)
        busy = sum(not a.done() for a in attack)
        status, answer, seconds = own.result()
        waits.sort()
        p99 = waits[len(waits) * 99 // 100]
        print(f"alone {alone:.3f} s; {len(waits)} chats, p99 {p99:.3f} s, worst {waits[-1]:.3f} s")
        assert busy, "the attack ended before the measurement"
        assert status == 200, answer
        # what the first schema took among all this; refusals of a full queue come at once
        costs = min(took for s, _, took in (a.result() for a in attack) if s != 429)
        print(f"regex {seconds:.1f} s, one schema {costs:.1f} s")
        assert seconds < 3 * costs  # one turn of the other key
        assert p99 < WORST / 2 + alone and waits[-1] < WORST + 2 * alone, waits[-9:]
        assert {a.result()[0] for a in attack} <= {200, 400, 429}


@pytest.mark.nightly
def test_equal_schemas_cost_one_compilation(server):
    """Before: eight took 37.5 s."""
    ask(server, ANN, guided_regex="a")
    _, _, once = ask(server, ANN, **costly("x"))
    with ThreadPoolExecutor(8) as pool:
        begin = time.monotonic()
        requests = [pool.submit(ask, server, ANN, **costly("y")) for _ in range(8)]
        statuses = {f.result()[0] for f in requests}
        together = time.monotonic() - begin
    print(f"one {once:.1f} s, eight {together:.1f} s")
    assert len(statuses) == 1 and together < 2 * once + 1
    assert ask(server, ANN, **costly("y"))[2] < 1
