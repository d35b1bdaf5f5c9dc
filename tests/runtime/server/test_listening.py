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


def test_a_socket_file_that_another_server_has(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(UsageError, match=f"--uds {path}: another server listens .*wherry ps"):
            checked(uds=path)
        assert path.is_socket()  # theirs is left
    assert checked(uds=path)[0].uds == path  # the socket of a dead server is no obstacle
    assert not path.exists()  # nothing of the attempt is left


def test_a_socket_file_that_cannot_be_created(tmp_path):
    with pytest.raises(UsageError, match=r"--uds .*/none/socket: No such file or directory"):
        checked(uds=tmp_path / "none" / "socket")
    path = tmp_path / "letter"
    path.write_text("of somebody")
    with pytest.raises(UsageError, match="a file of that name exists, which is not a socket"):
        checked(uds=path)
    assert path.read_text() == "of somebody"
