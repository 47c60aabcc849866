"""What a client measures of itself, by Kafka's names: for `metrics()`, for the brokers (KIP-714), for Prometheus.

Hot paths only add to integers, per request or batch (`meters`); everything else is worked out when somebody asks.
"""

from barnabas.client.metrics.values import MetricName, Metrics

__all__ = ["MetricName", "Metrics"]
