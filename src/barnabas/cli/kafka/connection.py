"""The clients of Kafka's commands, made from their flags, and the texts of Kafka's exceptions.

Imports the clients: only a command that runs imports this.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.cli.data import clients
from barnabas.cli.kafka.flags import Options, WrongUse
from barnabas.cli.known_options import known_options
from barnabas.cli.log_level import log_level
from barnabas.cli.outages import kafka_warning, report_outages
from barnabas.client.admin import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions
from barnabas.client.producer import Producer
from barnabas.config.properties import parse_properties
from barnabas.errors import ErrorCode, KafkaError

# Here a broker is its own controller.
ADDRESSES = ("bootstrap-server", "bootstrap-controller")
# Kafka's text for a code where the broker sent none; commands print it, scripts look for it.
_TEXTS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token"
        " authenticated channels."
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The requested offset is not within the range of offsets maintained by the server.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.SECURITY_DISABLED: "Security features are disabled.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found",
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    ErrorCode.POLICY_VIOLATION: "Request parameters do not satisfy the configured policy.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
}
_EXCEPTIONS = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
}


@contextmanager
def admin_client(options: Options, timeout_ms: int | None = None) -> Iterator[Admin]:
    with admin_of(client_config(options), timeout_ms) as admin:
        yield admin


@contextmanager
def admin_of(config: dict[str, str], timeout_ms: int | None = None) -> Iterator[Admin]:
    if timeout_ms is not None:
        config["default.api.timeout.ms"] = str(timeout_ms)
        config.setdefault("request.timeout.ms", str(timeout_ms))
    with log_level(), Admin.from_config(known_options(AdminOptions, config)) as admin:
        yield admin


@contextmanager
def consumer_of(config: dict[str, str]) -> Iterator[Consumer]:
    """Brokers that cannot be reached are reported on stderr. A missing topic is created, as by Java's consumer."""
    config = {"allow.auto.create.topics": "true", **config}
    with report_outages(kafka_warning), Consumer.from_config(known_options(ConsumerOptions, config)) as consumer:
        yield consumer


@contextmanager
def producer_of(config: dict[str, str]) -> Iterator[Producer]:
    with report_outages(kafka_warning), clients.producer_of(known_options(ProducerOptions, config)) as producer:
        yield producer


def client_config(options: Options) -> dict[str, str]:
    """Client options by Kafka's names: the file, then single properties, then the address."""
    config: dict[str, str] = {}
    path = options.value("command-config")
    if path is not None:
        config.update(properties_file(path))
    for pair in options.values("command-property"):
        key, _, value = pair.partition("=")
        config[key] = value
    for flag in ADDRESSES:
        if options.has(flag):
            config["bootstrap.servers"] = options.value(flag)
    return config


def properties_file(path: str) -> dict[str, str]:
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongUse(f"{path} cannot be read: {reason}") from None


def kafka_text(error: BaseException) -> str:
    """What Kafka's exception would say."""
    errors = getattr(error, "errors", None)
    if errors:
        return kafka_text(next(iter(errors.values())))
    if not isinstance(error, KafkaError):
        return str(error)
    return error.told or _TEXTS.get(error.code) or _not_served(error) or error.message


def _not_served(error: KafkaError) -> str | None:
    """Kafka's text for an API that the broker does not list."""
    api = getattr(error, "missing_api", None)
    return api and f"The node does not support {api.name}"


def exception_name(error: KafkaError) -> str:
    """What Kafka's exception is called: GROUP_ID_NOT_FOUND is a GroupIdNotFoundException, and
    CLUSTER_AUTHORIZATION_FAILED a ClusterAuthorizationException.
    """
    code = error.code
    name = (
        _EXCEPTIONS.get(code)
        or "".join(word.capitalize() for word in code.name.removesuffix("_FAILED").split("_")) + "Exception"
    )
    return f"org.apache.kafka.common.errors.{name}"


def kafka_exception(error: KafkaError) -> str:
    """A failure as Java prints an exception: its class and what it says."""
    return f"{exception_name(error)}: {kafka_text(error)}"
