"""A client of WebSockets over a socket, byte for byte."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Message,
    Pong,
    RejectConnection,
    RejectData,
    Request,
)

PATH = "/v1/responses"
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class Refused(Exception):
    """The handshake was answered with something else."""

    def __init__(self, status, headers, body):
        super().__init__(status, body)
        self.status, self.headers, self.body = status, headers, body


class SocketClient:
    """One connection; `code` is its close code, 1006 without a close frame."""

    def __init__(self, url, path=PATH, timeout=20, **headers):
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port), timeout)
        self.code = None
        self.pongs = 0
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._events = iter(())
        self._texts = []
        extra = [(name.replace("_", "-").encode(), v.encode()) for name, v in headers.items()]
        self.write(self._connection.send(Request(place.netloc, path, extra_headers=extra)))
        event, body = self._next(), b""
        if isinstance(event, RejectConnection):
            while isinstance(piece := self._next(), RejectData):
                body += piece.data
                if piece.body_finished:
                    break
            raise Refused(event.status_code, dict(event.headers), body.decode())
        assert isinstance(event, AcceptConnection)
        self.headers = {name.decode().lower(): v.decode() for name, v in event.extra_headers}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def write(self, data):
        self.socket.sendall(data)

    def send(self, **fields):
        self.text(json.dumps({"type": "response.create", "model": "small", **fields}))

    def text(self, data, last=True):
        self.write(self._connection.send(Message(data, message_finished=last)))

    def frame(self, event):
        self.write(self._connection.send(event))

    def event(self):
        """The next message; None at the end."""
        text = ""
        while (received := self._next()) is not None:
            if isinstance(received, CloseConnection):
                self.code = int(received.code)
                return None
            if isinstance(received, Pong):
                self.pongs += 1
            elif isinstance(received, Message):
                text += received.data
                if received.message_finished:
                    return json.loads(text)
        self.code = self.code or 1006
        return None

    def turn(self):
        """All events of one response, or the error."""
        events = [self.event()]
        while events[-1] is not None and events[-1]["type"] not in ENDS:
            events.append(self.event())
        return events

    def ask(self, **fields):
        """The response of one turn, or the error."""
        self.send(**fields)
        last = self.turn()[-1]
        return last.get("response") or last

    def _next(self):
        while True:
            if (event := next(self._events, None)) is not None:
                return event
            try:
                data = self.socket.recv(2**16)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self._connection.receive_data(data)
            self._events = self._connection.events()
