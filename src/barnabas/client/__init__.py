"""Python clients for Barnabas and any other Kafka: what producer, consumer and admin have in common, and they themselves.

Users import from `barnabas` and `barnabas.aio`. Nothing in here imports the broker.
"""
