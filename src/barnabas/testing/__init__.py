"""A broker inside the test's own process: ready at once, gone at the end, and it can misbehave on demand.

    with Broker() as broker:
        broker.bootstrap                      # "127.0.0.1:PORT", for any Kafka client
        broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", count=2)

pytest users get it as the fixture `barnabas_broker`, which comes with the package.
"""

from barnabas.testing.broker import Broker

__all__ = ["Broker"]
