"""Bodies that are almost right, sent to a server over a scripted core."""

from __future__ import annotations

import json
import random

from starlette.testclient import TestClient

from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from ..test_fuzz_requests import mutate, spoil, wait_until_empty


def fuzz(make, bodies, check, seeds):
    """For each seed a body of `bodies` (by path), spoilt; `check` gets the path and the answer."""
    model = make("the cat sat ", context=2000, pages=4096)
    core_of(model).script.accept = lambda params, token: False  # some bodies ask for a grammar
    app = create_app(MLCEngine.of(model))
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
    for seed in seeds:
        rng = random.Random(seed)
        path = rng.choice(list(bodies))
        value = mutate(rng, bodies[path])
        body = json.dumps(value, ensure_ascii=rng.random() < 0.7).encode(errors="surrogatepass")
        body = spoil(rng, body) if rng.random() < 0.2 else body
        try:
            headers = {"Content-Type": "application/json"}
            check(path, client.post(path, content=body, headers=headers))
        except Exception as e:
            raise AssertionError(f"seed {seed}: POST {path} {body[:2000]!r}") from e
    assert client.get("/health").json() == {"status": "ok"}
    wait_until_empty(model)
