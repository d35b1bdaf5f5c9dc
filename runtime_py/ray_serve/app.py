"""The application that `serve run wherry.serve_ray:app` builds."""

# No postponed annotations: Ray Serve looks at the type of the builder's argument.
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, RequestRouterConfig

from wherry import settings

from ..server.defaults import DRAIN_SECONDS
from .ingress import Ingress
from .options import Options
from .replica import Replica
from .router import PrefixRouter

ENGINE, INGRESS = "Engine", "Ingress"  # the deployments, as config files name them

_MOST_REQUESTS = 64  # at a replica; others wait in the ingress


def app(args: Options) -> Application:
    """A server of one model on many machines, with the HTTP surface of `wherry serve`.

    Sizes of the two deployments are Ray Serve's: a config file changes `Engine` (replicas,
    autoscaling, CPUs, GPUs, health checks) and `Ingress` under `deployments`.

    Args:
        args: see Options; `serve run wherry.serve_ray:app model=demo` gives them, too.
    """
    api_key = settings.api_key()  # of this process; a replica's own environment is asked otherwise
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
    """Nothing unless asked for: what the code says, no `num_replicas` of a config file undoes."""
    if args.max_replicas is None:
        return {}
    scaling = AutoscalingConfig(
        min_replicas=args.min_replicas,
        max_replicas=args.max_replicas,
        target_ongoing_requests=args.target_requests,
    )
    return {"autoscaling_config": scaling}


# Waits nearly all of its time; one serves some hundred streams.
_INGRESS: dict[str, Any] = {
    "num_replicas": 1,
    "max_ongoing_requests": 4096,
    "ray_actor_options": {"num_cpus": 0.1},
    "graceful_shutdown_timeout_s": DRAIN_SECONDS,
}
