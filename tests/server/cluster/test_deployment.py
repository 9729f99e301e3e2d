"""The config of a cluster: cluster.yaml describes what `build` understands."""

import pytest
import yaml

from dia_demo.files import ROOT

pytest.importorskip("ray", reason="pip install -r requirements-serve.txt")
from pydantic import ValidationError  # noqa: E402
from ray.serve.schema import ServeDeploySchema  # noqa: E402

from dia_demo.engine.scheduler import PLACES  # noqa: E402
from dia_demo.server.cluster.deployment import ClusterOptions, build  # noqa: E402

pytestmark = pytest.mark.long
CONFIG = ROOT / "dia_demo" / "server" / "cluster" / "cluster.yaml"


def engines_of(options):
    return build(options)._bound_deployment.init_args[0]._bound_deployment


def test_the_file_is_a_config_of_ray_serve():
    config = ServeDeploySchema.model_validate(yaml.safe_load(CONFIG.read_text()))
    (application,) = config.applications
    assert application.import_path == f"{build.__module__}:{build.__name__}"
    options = ClusterOptions.model_validate(application.args)
    assert options.most_replicas > options.replicas
    assert options.host == config.http_options.host, "which decides whether tokens are needed"


def test_replicas_follow_the_rows_that_wait():
    scaling = engines_of(ClusterOptions(replicas=2, most_replicas=6))
    config = scaling._deployment_config.autoscaling_config
    assert (config.min_replicas, config.max_replicas) == (2, 6)
    assert config.target_ongoing_requests == PLACES
    assert scaling._deployment_config.max_ongoing_requests > PLACES, "some are read meanwhile"


def test_a_replica_gets_as_many_rows_as_it_has_places(monkeypatch):
    monkeypatch.setenv("DIA_AT_ONCE", "16")
    config = engines_of(ClusterOptions(replicas=2, most_replicas=6))._deployment_config
    assert config.autoscaling_config.target_ongoing_requests == 16
    assert config.max_ongoing_requests == 24


def test_a_fixed_number_of_replicas_stays():
    fixed = engines_of(ClusterOptions(replicas=3))._deployment_config
    assert fixed.autoscaling_config is None and fixed.num_replicas == 3


def test_an_unknown_option_is_refused():
    with pytest.raises(ValidationError, match="repliccas"):
        ClusterOptions.model_validate({"repliccas": 3})


def test_a_cluster_is_closed_to_programs_without_a_token_unless_it_is_told_otherwise():
    assert ClusterOptions().host == "0.0.0.0"
