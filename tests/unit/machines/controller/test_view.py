"""The settings that elections depend on, as the controller sees them."""

from collections.abc import Mapping

from barnabas.machines.controller.image import CLUSTER_DEFAULT, ClusterImage, ConfigResource
from barnabas.machines.controller.partition_index import PartitionIndex
from barnabas.machines.controller.view import View


class OwnFile:
    """What this broker's own file says about every setting."""

    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        raise AssertionError

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        raise AssertionError

    def default(self, resource: ConfigResource, name: str) -> str | None:
        return {"min.insync.replicas": "3", "unclean.leader.election.enable": "true"}.get(name)


def view(configs: Mapping[ConfigResource, Mapping[str, str]]) -> View:
    image = ClusterImage(configs=configs)
    return View(image, PartitionIndex(image), OwnFile())


def test_min_isr_is_what_every_broker_knows_and_never_that_of_the_controllers_own_file() -> None:
    topic = {ConfigResource.topic("t"): {"min.insync.replicas": "2"}}
    assert view({}).min_isr("t") == 1
    assert view({CLUSTER_DEFAULT: {"min.insync.replicas": "2"}}).min_isr("t") == 2
    assert view(topic).min_isr("t") == 2


def test_unclean_elections_go_by_the_file_unless_the_cluster_says_otherwise() -> None:
    assert view({}).unclean_allowed("t")
    assert not view({CLUSTER_DEFAULT: {"unclean.leader.election.enable": "false"}}).unclean_allowed("t")
