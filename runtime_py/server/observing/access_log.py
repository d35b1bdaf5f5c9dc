"""Writes the request log: a line for each request, as text or JSON, without the content."""

from __future__ import annotations

import copy
import json
import logging
import time
from typing import Any

from uvicorn.config import LOGGING_CONFIG

from ..life import PROBES
from .record import RequestRecord

NAME = "wherry.access"
FORMATS = ("text", "json")
# Programs and the chat page request these paths every few seconds, so only their failures are
# logged.
_QUIET = PROBES | {"/metrics", "/stats"}
_SHOWN = 200  # characters of a path that a log line shows
_log = logging.getLogger(NAME)


def write(record: RequestRecord) -> None:
    """Write the log line of a request that has ended."""
    quiet = record.path in _QUIET and record.status < 400
    level = logging.DEBUG if quiet else logging.INFO
    if _log.isEnabledFor(level):
        values = fields(record)
        _log.log(level, "%s", _line(values), extra={"fields": values})


def fields(record: RequestRecord) -> dict[str, Any]:
    """Return the fields of a log line, times in seconds; unknown fields are omitted."""
    values: dict[str, Any] = {
        "request_id": record.id,
        "client": record.client,
        "key": record.key,
        "method": record.method[:_SHOWN],
        "path": record.path[:_SHOWN],
        "status": record.status,
        "duration": round(record.seconds, 4),
        "error": record.error,
    }
    if running := record.written:
        values |= {
            "model": record.model,
            "stream": record.stream,
            "prompt_tokens": running.opened["prompt_tokens"],
            "cached_tokens": running.totals.cached,
            "output_tokens": running.totals.sampled,
            "ttft": _rounded(record.first_token_seconds),
            "outcome": record.outcome,
        }
    return {name: value for name, value in values.items() if value is not None}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _line(values: dict[str, Any]) -> str:
    # escaped, so that a path contains no line ends and no terminal codes
    path = values["path"].encode("unicode_escape").decode("ascii")
    parts = [values["client"], f"{values['method']} {path}", str(values["status"])]
    parts.append(f"{values['duration']:.3f} s")
    if "model" in values:
        tokens = f"{values['prompt_tokens']}+{values['output_tokens']} tokens"
        parts.append(f"{values['model']} {tokens} ({values['cached_tokens']} cached)")
    if "ttft" in values:
        parts.append(f"first after {values['ttft']:.3f} s")
    parts += [f"{name}={values[name]}" for name in ("error", "key") if name in values]
    return "  ".join([*parts, values["request_id"]])


class JsonLines(logging.Formatter):
    """Writes each line of the log as a JSON object with the names of `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one log line as JSON."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        values = {
            "time": f"{stamp}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        known = getattr(record, "fields", None)
        values |= known if known is not None else {"message": record.getMessage()}
        if record.exc_info:
            values["exception"] = self.formatException(record.exc_info)
        return json.dumps(values, ensure_ascii=True, default=str)


def config(log_format: str) -> dict[str, Any]:
    """Return the configuration for logging.config; all goes to stderr, as stdout has results."""
    settings: dict[str, Any] = copy.deepcopy(LOGGING_CONFIG)
    settings["handlers"]["access"]["stream"] = "ext://sys.stderr"
    settings["formatters"]["plain"] = {"format": "%(message)s"}
    settings["handlers"]["requests"] = {
        "class": "logging.StreamHandler",
        "formatter": "plain",
        "stream": "ext://sys.stderr",
    }
    settings["loggers"][NAME] = {"handlers": ["requests"], "level": "INFO", "propagate": False}
    if log_format == "json":
        settings["formatters"]["json"] = {"()": JsonLines}
        for handler in settings["handlers"].values():
            handler["formatter"] = "json"
        settings["loggers"]["wherry"] = {"handlers": ["default"], "propagate": False}
    return settings
