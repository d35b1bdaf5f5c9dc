"""The arguments of the Ray Serve application, from `serve run` or a config file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..load.options import checked
from ..server.defaults import MAX_BODY, MAX_QUEUE, STUCK_SECONDS


class Options(BaseModel):
    """Options of the model and its server; the sizes of deployments are Ray Serve's own options."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    model: str = "demo"  # the model, a MODEL of `wherry serve`; each machine compiles it once
    model_name: str | None = None  # the model's name for clients; None: its own name
    load: dict[str, Any] = Field(
        default_factory=dict
    )  # options of the load (LoadOptions): quant, context, max_batch, ...
    # allowed origins (CORS); create_app describes this option and the next seven
    cors: list[str] = Field(default_factory=list)
    hosts: list[str] = Field(default_factory=list)
    media_hosts: list[str] = Field(default_factory=list)
    # a file of keys on each machine; its limits apply to each replica separately
    keys: str | None = None
    # seconds that a request may take; None: no limit
    request_timeout: float | None = Field(None, gt=0)
    max_body: int = Field(MAX_BODY, ge=1)  # maximum bytes of a request's body
    max_queue: int = Field(MAX_QUEUE, ge=0)
    # seconds without progress after which Ray replaces the replica
    stuck_seconds: float = Field(STUCK_SECONDS, gt=0)
    # Maximum number of replicas: Ray scales to `target_requests` running and waiting requests a
    # replica. None: the config file's number, or its autoscaling_config.
    max_replicas: int | None = Field(None, ge=1)
    min_replicas: int = Field(1, ge=0)
    target_requests: float = Field(16, gt=0)
    # minimum seconds between two pieces of a stream
    stream_interval_seconds: float = Field(0.05, ge=0, le=5)
    # maximum pieces a second, of all streams of a replica together
    stream_pieces_per_second: float = Field(250, gt=0)
    # Number of requests by which a replica with the prompt's prefix may exceed the idlest replica.
    prefix_slack: int = Field(8, ge=0)
    # number of blocks (64 bytes of text each) remembered for each replica
    prefix_blocks: int = Field(2**16, ge=0)

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
