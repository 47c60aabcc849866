"""A broker inside the test's own process: ready at once, gone at the end, and it can misbehave on demand.

    with Broker() as broker:
        broker.bootstrap                      # "127.0.0.1:PORT", for any Kafka client
        broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", count=2)

`Cluster` is several of them, with leaders to kill. pytest users get them as the fixtures `barnabas_broker` and
`barnabas_cluster`, which come with the package.
"""

from barnabas.testing.broker import Broker
from barnabas.testing.cluster import Cluster

__all__ = ["Broker", "Cluster"]
