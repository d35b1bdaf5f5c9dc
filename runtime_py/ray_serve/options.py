"""The arguments of the application, from `serve run` or a config file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..load.options import checked
from ..server.defaults import MAX_BODY, MAX_QUEUE, STUCK_SECONDS


class Options(BaseModel):
    """Options of the model and its server; the deployments' sizes are Ray Serve's own options."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = "demo"  # a MODEL of `wherry serve`; each machine compiles it once
    model_name: str | None = None  # its name for clients; None: the model's own
    load: dict[str, Any] = Field(
        default_factory=dict
    )  # of LoadOptions: quant, context, max_batch, ...
    cors: list[str] = Field(default_factory=list)  # see create_app, as the next six
    hosts: list[str] = Field(default_factory=list)
    keys: str | None = None  # a file on each machine; its limits apply to each replica separately
    request_timeout: float | None = Field(None, gt=0)  # seconds
    max_body: int = Field(MAX_BODY, ge=1)  # bytes
    max_queue: int = Field(MAX_QUEUE, ge=0)
    stuck_seconds: float = Field(STUCK_SECONDS, gt=0)  # then Ray replaces the replica
    # Ray scales to `target_requests` running and waiting requests a replica. None:
    # the config file's number, or its autoscaling_config.
    max_replicas: int | None = Field(None, ge=1)
    min_replicas: int = Field(1, ge=0)
    target_requests: float = Field(16, gt=0)
    stream_interval_seconds: float = Field(0.05, ge=0, le=5)  # between two pieces of a stream
    stream_pieces_per_second: float = Field(250, gt=0)  # of all streams of a replica
    # Requests that the replica with a prompt's prefix may have more than the idlest replica.
    prefix_slack: int = Field(8, ge=0)
    prefix_blocks: int = Field(2**16, ge=0)  # remembered for each replica, 64 bytes of text each

    @field_validator("load")
    @classmethod
    def _known(cls, load: dict[str, Any]) -> dict[str, Any]:
        try:
            checked(load)
        except TypeError as e:
            raise ValueError(str(e)) from e
        return load

    @model_validator(mode="after")
    def _ordered(self) -> Options:
        if self.max_replicas is not None and self.max_replicas < self.min_replicas:
            raise ValueError(
                f"max_replicas is {self.max_replicas}, and min_replicas {self.min_replicas}"
            )
        return self
