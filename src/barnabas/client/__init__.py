"""Python clients for Barnabas and any other Kafka: producer, consumer and admin, and what they share.

Users import from `barnabas` and `barnabas.aio`. Nothing in here imports the broker.
"""
