"""/ready and /version."""

from __future__ import annotations

import wherry
from wherry.runtime import MLCEngine, create_app

from ..conftest import core_of
from .asking import COMPLETIONS, client_of


def test_version(make):
    client = client_of(create_app(MLCEngine.of(make())))
    assert client.get("/version").json()["version"] == wherry.__version__


def test_the_address_of_clients_tells_what_is_there(make):
    client = client_of(create_app(MLCEngine.of(make()), api_key="k"))
    assert client.get("/v1").status_code == 401
    for path in ("/v1", "/v1/"):
        info = client.get(path, headers={"Authorization": "Bearer k"}).json()
        assert info["server"] == "wherry" and info["models"] == [info["model"]]
        assert "POST /v1/chat/completions" in info["endpoints"]
        assert all(" /v1" in endpoint for endpoint in info["endpoints"])


def test_ready_without_a_key(make):
    client = client_of(create_app(MLCEngine.of(make()), api_key="k"))
    assert client.get("/ready").json() == {"ready": True, "status": "ok"}
    assert client.get("/version").status_code == 401


def test_not_ready_while_draining_though_healthy(make):
    app = create_app(MLCEngine.of(make()), api_key="k")
    client = client_of(app)
    app.state.life.drain(7)
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["status"]) == (503, "draining")
    assert client.get("/health").status_code == 200


def test_not_ready_when_the_engine_has_failed(make):
    model = make(None)
    client = client_of(create_app(MLCEngine.of(model)))
    core_of(model).break_with = "broken"
    client.post(COMPLETIONS, json={"prompt": "a"})
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"ready": False, "status": "failed"})
