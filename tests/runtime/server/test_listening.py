"""An address that cannot be had is refused before a model is compiled or loaded."""

from __future__ import annotations

import socket

import pytest

from wherry.errors import UsageError
from wherry.runtime.server.serving import checked


def test_a_port_that_another_program_has():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            UsageError, match=f"127.0.0.1:{port}: address already in use. `.*--port 0"
        ):
            checked(port=port)
    assert checked(port=port)[0].port == port  # nothing of the attempt is left


def test_an_address_of_another_machine():
    with pytest.raises(UsageError, match=r"Cannot listen on 192\.0\.2\.1:8000"):
        checked("192.0.2.1", api_key="k")
