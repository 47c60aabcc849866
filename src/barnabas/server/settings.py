"""The settings that hold at this moment: what the broker was started with, changed by what the cluster's image says.

`config` is replaced as a whole when a dynamic setting changes; read a value when it is needed, never keep it.
"""

import logging
from collections.abc import Mapping

from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import BrokerLayers
from barnabas.config.dynamic import ResourceRules, effective_config
from barnabas.config.faults import ConfigFaults
from barnabas.config.quotas import BrokerQuotas
from barnabas.config.topic import TopicConfig
from barnabas.metadata.image import CLUSTER_DEFAULT, NO_CONFIG, ClusterImage, ConfigResource

logger = logging.getLogger(__name__)


class Settings:
    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        self.config = static
        self.quotas = BrokerQuotas()
        self._cluster_default: Mapping[str, str] = NO_CONFIG
        self._own: Mapping[str, str] = NO_CONFIG
        self._topic_default = TopicConfig.resolve({}, static)
        self.rules = ResourceRules(static, lambda: (self._cluster_default, self._own))

    @property
    def layers(self) -> BrokerLayers:
        return BrokerLayers(self.static, self._cluster_default, self._own)

    def on_image(self, image: ClusterImage) -> bool:
        """Takes over the broker's dynamic settings; says whether anything changed."""
        default, own = image.config(CLUSTER_DEFAULT), image.config(ConfigResource.broker(self.static.node_id))
        if default == self._cluster_default and own == self._own:
            return False
        try:
            self.config = effective_config(self.static, default, own)
        except ConfigFaults as faults:
            logger.error("dynamic settings do not go together, keeping the old ones: %s", faults)
            return False
        self._cluster_default, self._own = default, own
        self.quotas = BrokerQuotas.resolve(default, own)
        self._topic_default = TopicConfig.resolve({}, self.config)
        return True

    def topic_config(self, image: ClusterImage, topic: str) -> TopicConfig:
        """What holds for a topic. Topics without settings of their own share one object."""
        overrides = image.topic_config(topic)
        if not overrides:
            return self._topic_default
        try:
            return TopicConfig.resolve(overrides, self.config)
        except ConfigFaults as faults:
            logger.error("settings of topic %s are not valid, using the broker's: %s", topic, faults)
            return self._topic_default
