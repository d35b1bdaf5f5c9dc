"""The application that `serve run wherry.serve_ray:app` builds."""

# Annotations must be evaluated here (no `__future__` import), because Ray Serve reads the type of
# the builder's argument.
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, RequestRouterConfig

from wherry.base import settings

from ..server.defaults import DRAIN_SECONDS
from .ingress import Ingress
from .options import Options
from .replica import Replica
from .router import PrefixRouter

ENGINE, INGRESS = "Engine", "Ingress"  # names of the deployments in config files

_MOST_REQUESTS = 64  # maximum number of requests at a replica; others wait in the ingress


def app(args: Options) -> Application:
    """Build a server of one model on several machines, with the paths of `wherry serve`.

    A config file sets Ray Serve's options of `Engine` (replicas, autoscaling, CPUs, GPUs, health
    checks) and `Ingress` under `deployments`.

    Args:
        args: the application's options, which `serve run wherry.serve_ray:app model=demo` sets,
            too.
    """
    # the key is read in this process, because replicas may have another environment
    api_key = settings.api_key()
    engine = serve.deployment(Replica, name=ENGINE, **_engine(args)).bind(args, api_key)
    return serve.deployment(Ingress, name=INGRESS, **_INGRESS).bind(engine, args.max_body)


def _engine(args: Options) -> dict[str, Any]:
    return {
        **_autoscaling(args),
        "max_ongoing_requests": _MOST_REQUESTS,
        "max_queued_requests": args.max_queue,
        "health_check_period_s": 10,
        "health_check_timeout_s": 30,
        "graceful_shutdown_timeout_s": DRAIN_SECONDS,
        "request_router_config": RequestRouterConfig(
            request_router_class=f"{PrefixRouter.__module__}:{PrefixRouter.__name__}",
            request_router_kwargs={"slack": args.prefix_slack, "blocks": args.prefix_blocks},
            request_routing_stats_period_s=5,
        ),
    }


def _autoscaling(args: Options) -> dict[str, Any]:
    """Return autoscaling options if requested.

    A config file's `num_replicas` cannot override them.
    """
    if args.max_replicas is None:
        return {}
    scaling = AutoscalingConfig(
        min_replicas=args.min_replicas,
        max_replicas=args.max_replicas,
        target_ongoing_requests=args.target_requests,
    )
    return {"autoscaling_config": scaling}


# An ingress waits nearly all of its time, so a single one serves several hundred streams.
_INGRESS: dict[str, Any] = {
    "num_replicas": 1,
    "max_ongoing_requests": 4096,
    "ray_actor_options": {"num_cpus": 0.1},
    "graceful_shutdown_timeout_s": DRAIN_SECONDS,
}
