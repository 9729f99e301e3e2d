"""The cluster as a Ray Serve application: `build` is named by cluster.yaml."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from ray import serve
from ray.serve import Application

from dia_demo.server.cluster.gateway import Gateway
from dia_demo.server.cluster.replica import EngineReplica
from dia_demo.services.settings import Settings

# How long rows have waited for places before a replica is added, and how long one has to be idle
# before it is removed.
UPSCALE_SECONDS, DOWNSCALE_SECONDS = 5.0, 300.0
HEALTH_SECONDS = 2.0


class ClusterOptions(BaseModel):
    """replicas: of the engine, fixed, unless most_replicas is more. gateways: processes that speak
    HTTP. cores: of each replica, which it is pinned to; None for all of its machine's. host: where
    the cluster listens; it is open to programs without a token if that is this machine alone.
    end_seconds: for the takes of a process that is to end."""

    model_config = ConfigDict(extra="forbid")

    replicas: int = 1
    most_replicas: int = 1
    gateways: int = 1
    cores: int | None = None
    host: str = "0.0.0.0"
    end_seconds: float = 120.0


def build(options: ClusterOptions) -> Application:
    """The application: gateways in front of replicas. Raises InputError for settings that cannot be
    used."""
    places = Settings.from_env().at_once
    engines: dict[str, Any] = {"num_replicas": options.replicas}
    if options.most_replicas > options.replicas:
        bounds = {"min_replicas": options.replicas, "max_replicas": options.most_replicas}
        delays = {"upscale_delay_s": UPSCALE_SECONDS, "downscale_delay_s": DOWNSCALE_SECONDS}
        scaling = {"target_ongoing_requests": places} | delays | bounds
        engines = {"autoscaling_config": scaling}
    # Ray's CPUs only count: what a replica may use is its cores.
    replicas = serve.deployment(
        # Some wait there, and are read while the others advance.
        max_ongoing_requests=places + max(1, places // 2),
        graceful_shutdown_timeout_s=options.end_seconds,
        health_check_period_s=HEALTH_SECONDS,
        ray_actor_options={"num_cpus": options.cores or 1},
        **engines,
    )(EngineReplica)
    gateways = serve.deployment(
        num_replicas=options.gateways,
        max_ongoing_requests=1000,
        graceful_shutdown_timeout_s=options.end_seconds,
        health_check_period_s=HEALTH_SECONDS,
        ray_actor_options={"num_cpus": 0},
    )(Gateway)
    return gateways.bind(replicas.bind(options.cores), options.host)
