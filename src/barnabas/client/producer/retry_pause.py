"""How long a producer pauses before an attempt: Kafka's exponential back-off with jitter."""

from barnabas.client.options.producer import ProducerOptions
from barnabas.client.retry import Backoff


def pause_ms(options: ProducerOptions, attempts: int) -> float:
    """After `attempts` failures, at least one."""
    backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
    backoff.attempts = max(0, attempts - 1)
    return backoff.next_ms()
