"""What one WebSocket connection, and all of them, may take; and how they end with the server."""

from __future__ import annotations

import json
import random
import signal
import socket
import time

import pytest
from wsproto.events import CloseConnection, Message, Ping

from wherry.runtime.server.wire import socket_protocol
from wherry.runtime.server.wire.http_protocol import ConnectionLimits

from ..live_server import live
from ..test_fuzz_requests import spoil
from .asking import get
from .socket_client import Refused, SocketClient
from .test_responses_socket import LONG, code_of, freed
from .test_running import start


@pytest.fixture
def serving(make):
    def build(limits=None, text="hi", **options):
        core = LONG if text is None else {"context": 8192}
        return live(make(text, **core), ConnectionLimits(**(limits or {})), **options)

    return build


def ended(client, status, code, close):
    assert code_of(client.event()) == (status, code)
    assert client.event() is None and client.code == close


def test_a_message_in_pieces(serving):
    body = json.dumps({"type": "response.create", "input": "wörld 🎉"})
    with serving() as url, SocketClient(url) as client:
        for i in range(0, len(body), 3):
            client.text(body[i : i + 3], last=i + 3 >= len(body))
            client.frame(Ping(b"between"))
        assert client.turn()[-1]["type"] == "response.completed"
        assert client.pongs > 0


def test_large_messages(serving):
    with serving(max_body=10_000) as url:
        with SocketClient(url) as client:
            client.text("x" * 10_000)
            assert code_of(client.event()) == (400, "invalid_json")
            client.text("ö" * 5_001)  # bytes are counted
            ended(client, 413, "request_too_large", 1009)
        with SocketClient(url) as client:  # before it is whole
            for _ in range(11):
                client.text("x" * 1_000, last=False)
            ended(client, 413, "request_too_large", 1009)


def test_many_messages_that_are_not_complete(serving):
    with serving(max_body=10_000) as url:
        clients = [SocketClient(url) for _ in range(socket_protocol.UNREAD + 1)]
        for client in clients:
            client.text("x" * 9_500, last=False)
        waiting = [c for c in clients if c is not clients[-1]]
        ended(clients[-1], 429, "queue_full", 1013)
        for client in waiting:  # what was begun may end
            client.text("y")
            assert code_of(client.event()) == (400, "invalid_json")
        for client in clients:
            client.socket.close()
        with SocketClient(url) as client:
            client.text("x" * 9_500, last=False)
            client.text("y")
            assert code_of(client.event()) == (400, "invalid_json")


def test_a_slow_message(serving):
    with serving({"body_seconds": 0.2}) as url, SocketClient(url) as client:
        time.sleep(0.3)  # a connection that says nothing is not slow
        assert client.ask(input="a")["status"] == "completed"
        client.text('{"type"', last=False)
        ended(client, 408, "too_slow", 1008)


def test_a_client_that_does_not_read(make):
    model = make(None, **LONG | {"step_seconds": 0})
    with live(model, ConnectionLimits(write_seconds=0.3)) as url, SocketClient(url) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(input="a", top_logprobs=20)
        freed(model)


def test_idle_connections_make_room(serving):
    with serving({"connections": 2}, None) as url:
        with SocketClient(url) as busy, SocketClient(url) as idle:
            busy.send(input="a")
            busy.event()
            get(url, "/health")
            assert idle.event() is None and idle.code == 1006
            assert busy.event()["type"].startswith("response.")


def test_many_small_frames(serving):
    with serving() as url, SocketClient(url) as client:
        frames = b"".join(client._connection.send(Ping(b"")) for _ in range(3_000))
        client.write(frames)
        assert client.ask(input="a")["status"] == "completed"
        assert client.pongs == 3_000


def test_bad_handshakes_and_frames(serving):
    with serving() as url:
        with pytest.raises(Refused) as e:
            SocketClient(url, Sec_WebSocket_Version="7")
        assert e.value.status == 426
        with SocketClient(url) as client:
            client.write(b"\xff" * 64)  # reserved bits, an unknown kind
            ended(client, 400, "invalid_websocket", 1002)
        with SocketClient(url) as client:
            client.frame(Message("x"))
            client.write(b"\x81\x82\0\0\0\0\xff\xff")  # no UTF-8
            assert code_of(client.event()) == (400, "invalid_json")
            ended(client, 400, "invalid_websocket", 1007)
        with SocketClient(url) as client:
            client.frame(CloseConnection(code=1000))
            assert client.event() is None and client.code == 1000
        with SocketClient(url) as client:
            assert client.ask(input="a")["status"] == "completed"


def test_bytes_that_are_almost_right(make, caplog):
    model = make(None, **LONG | {"step_seconds": 0.001})
    with live(model, max_body=5_000) as url:
        for seed in range(60):
            rng = random.Random(seed)
            with SocketClient(url) as client:
                frames = [
                    Message('{"type": "response.create", "input": "a"}'),
                    Message("{" * rng.randrange(6_000), message_finished=False),
                    Message("}", message_finished=rng.random() < 0.5),
                    Ping(b"x" * rng.randrange(126)),
                    CloseConnection(code=1000, reason="because"),
                ]
                data = b"".join(client._connection.send(f) for f in rng.sample(frames[:4], k=3))
                data += client._connection.send(frames[4]) if rng.random() < 0.5 else b""
                client.write(spoil(rng, data) if rng.random() < 0.8 else data)
                if rng.random() < 0.5:
                    client.socket.shutdown(socket.SHUT_WR)
                    while client.socket.recv(2**16):
                        pass
        freed(model)
        end = time.monotonic() + 5
        while "wherry_websocket_connections 0.0" not in get(url, "/metrics")[2]:
            assert time.monotonic() < end
        with SocketClient(url) as client:  # nothing is counted any more that is gone
            client.text("x" * 5_000)
            assert code_of(client.event()) == (400, "invalid_json")
    assert not [r for r in caplog.records if r.levelname == "ERROR"], caplog.text


def test_a_server_that_ends_lets_the_turn_end():
    process, url = start()
    with SocketClient(url) as busy, SocketClient(url) as idle:
        busy.send(input="a")
        assert busy.event()["type"] == "response.created"
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        assert code_of(idle.ask(input="a")) == (503, "shutting_down")
        with pytest.raises(Refused) as e:
            SocketClient(url)
        assert e.value.status == 503
        print(file=process.stdin, flush=True)  # ends the turn
        turn = busy.turn()
        assert turn[-1]["type"] == "response.completed"
        for client in (busy, idle):
            assert client.event() is None and client.code == 1012
        assert process.communicate(timeout=10)[0].endswith("ended\n")
        assert process.returncode == 0


def test_a_turn_past_the_drain_is_ended():
    process, url = start(options="drain_seconds=1")
    with SocketClient(url) as client:
        client.send(input="a")
        client.event()
        process.send_signal(signal.SIGTERM)
        last = client.turn()[-1]
        assert last["type"] == "response.failed"
        assert "shutting down" in last["response"]["error"]["message"]
        assert client.event() is None and client.code == 1012
        assert process.communicate(timeout=10)[0].endswith("ended\n")
