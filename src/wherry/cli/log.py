"""Shows warnings, or with `--debug` the whole log, on stderr."""

from __future__ import annotations

import logging

import click


def show(debug: bool) -> None:
    """Write the log to stderr from now on.

    Args:
        debug: whether to write every message, with its level and its logger; else warnings alone.
    """
    handler = _Handler()
    form = "%(levelname)s %(name)s: %(message)s" if debug else None
    handler.setFormatter(logging.Formatter(form))
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("filelock").setLevel(logging.WARNING)


class _Handler(logging.Handler):
    """Handler that writes to the current stderr, which a progress bar may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)
