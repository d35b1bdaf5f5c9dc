"""The server's address: host and port, with or without TLS, or a Unix socket."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import ssl
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wherry.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An address to listen on.

    Attributes:
        host: name or IP address of an interface; other machines can reach it only with a key.
        port: TCP port; 0 takes a free one.
        uds: path of a Unix socket, instead of host and port.
        uds_mode: file mode of the Unix socket; a user who may write to it may connect.
        tls_cert: PEM file with the certificate chain; None: no TLS.
        tls_key: PEM file with the private key; None: the key is in `tls_cert`.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    uds: Path | None = None
    uds_mode: int = 0o600
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def check(self, has_key: bool) -> None:
        """Check that an address beyond this machine has a key, and TLS a certificate.

        Raises:
            UsageError: `host` is not a loopback address and there is no key; or a file is missing.
        """
        if self.tls_key and not self.tls_cert:
            raise UsageError("--tls-key needs the certificate, too: --tls-cert FILE")
        for name, path in (("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            if path and not path.is_file():
                raise UsageError(f"{name}: there is no file {path}")
        if self.tls_cert:
            load_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self)
        if self.uds and sys.platform == "win32":
            raise UsageError("--uds: this system has no Unix sockets")
        if self.uds or has_key or self.host == "localhost":
            return
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(self.host.strip("[]")).is_loopback:
                return
        raise UsageError(
            f"host is {self.host!r}, which other machines may reach, and there is no API key. Give "
            "one (--api-key, WHERRY_API_KEY or --keys), or listen on 127.0.0.1."
        )

    def check_free(self) -> None:
        """Check that the address is usable, before minutes of compiling and loading.

        Raises:
            UsageError: another program listens there, or the address is not one of this machine.
        """
        if self.uds:
            # the Unix socket is created and removed again
            with unix_socket(self.uds, self.uds_mode):
                return
        if not self.port:
            return
        host = self.host.strip("[]")
        try:
            family = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM)[0][0]
            socket.create_server((host, self.port), family=family).close()
        except OSError as e:
            raise UsageError(
                f"Cannot listen on {self.host}:{self.port}: {_reason(e)}. "
                "`wherry ps` lists this machine's servers. Type: --port 0, for any free one"
            ) from e

    def url(self, bound: socket.socket) -> str:
        """Return the URL of a listening socket."""
        if self.uds:
            return f"unix:{self.uds}"
        host, port = bound.getsockname()[:2]
        return f"http{'s' * bool(self.tls_cert)}://{f'[{host}]' if ':' in host else host}:{port}"


def _reason(error: OSError) -> str:
    """Return the system's message of an error without Python's additions.

    Errors of failed name lookups have no number.
    """
    known = error.errno in errno.errorcode and not isinstance(error, socket.gaierror)
    return os.strerror(error.errno).lower() if error.errno and known else str(error.strerror)


def load_certificate(context: ssl.SSLContext, address: Address) -> None:
    """Load the certificate of `address` into a TLS context; later connections use it.

    Raises:
        UsageError: the files cannot be used.
    """
    assert address.tls_cert
    try:
        context.load_cert_chain(address.tls_cert, address.tls_key, password=_no_password)
    except (OSError, ssl.SSLError) as e:
        files = " and ".join(str(p) for p in (address.tls_cert, address.tls_key) if p)
        raise UsageError(f"{files} cannot be used for TLS: {e}") from e


def _no_password() -> str:
    """Raise an error: the password callback of an encrypted key; a server cannot ask for one."""
    return ""


@contextlib.contextmanager
def unix_socket(path: Path, mode: int) -> Iterator[socket.socket]:
    """Bind a socket to `path`; remove it at the end.

    The socket is created with its file mode, so there is no moment at which other users can
    connect.

    Raises:
        UsageError: the path cannot be used, or another program listens there.
    """
    bound = socket.socket(socket.AF_UNIX)
    try:
        _make_way(path)
        mask = os.umask(0o777 & ~mode)
        try:
            bound.bind(str(path))
        finally:
            os.umask(mask)
        path.chmod(mode)
        inode = path.stat().st_ino
    except OSError as e:
        bound.close()
        raise UsageError(f"--uds {path}: {e.strerror or e}") from e
    try:
        yield bound
    finally:
        bound.close()
        # another server may have taken the path meanwhile, or removed it
        with contextlib.suppress(OSError):
            if path.stat().st_ino == inode:
                path.unlink()


def _make_way(path: Path) -> None:
    """Remove the socket file of a server that has died."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise OSError(errno.EEXIST, "a file of that name exists, which is not a socket")
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError(
        errno.EADDRINUSE,
        "another server listens there. `wherry ps` lists this machine's servers. Type another path",
    )
