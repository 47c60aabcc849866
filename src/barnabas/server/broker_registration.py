"""This broker's own node in the store: made at the start, and again whenever it is gone.

Called in the store's thread. A node of a dead predecessor is replaced at once if it names a directory that this broker
holds the lock of (`metadata/repository:register_broker`); else its session has to end first.
"""

from typing import Protocol

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import BrokerImage
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.store import NodeExistsError, SessionExpiredError
from barnabas.types import NodeId


class RegisteredDirectories(Protocol):
    """The broker's log directories, as the controller gets to know them."""

    @property
    def ids(self) -> tuple[str, ...]: ...

    @property
    def previous_epoch(self) -> int:
        """The broker epoch that they took part in last, -1 if unknown."""
        ...

    @property
    def unclean_stop(self) -> bool: ...

    def registering(self) -> None:
        """A new epoch begins: from now on the last one is not certain."""
        ...

    def registered(self, epoch: int) -> None: ...


class NoDirectories:
    """For a member that keeps no records."""

    ids: tuple[str, ...] = ()
    previous_epoch = -1
    unclean_stop = False

    def registering(self) -> None:
        pass

    def registered(self, epoch: int) -> None:
        pass


class BrokerRegistration:
    def __init__(self, repository: MetadataRepository, broker_id: NodeId, clock: Clock) -> None:
        self._repository = repository
        self._broker_id = broker_id
        self._clock = clock
        self._incarnation = ""
        self.broker = BrokerImage(broker_id, ())
        self.directories: RegisteredDirectories = NoDirectories()
        self.epoch = -1

    def is_current(self) -> bool:
        found = self._repository.find_registration(self._broker_id)
        return found is not None and found.is_own and found.broker.epoch == self.epoch

    def register(self) -> None:
        """Raises KafkaError (DUPLICATE_BROKER_REGISTRATION) while another process holds the id."""
        directories = self.directories
        # Of the process: the number of its first session, which the store never gives out again.
        self._incarnation = self._incarnation or str(self._repository.store.session_id)
        broker = self.broker._replace(
            directory_ids=directories.ids,
            incarnation=self._incarnation,
            previous_epoch=directories.previous_epoch,
            unclean_stop=directories.unclean_stop,
        )
        directories.registering()
        try:
            self._repository.register_broker(broker, self._clock.now_ms())
        except NodeExistsError as error:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"A broker with id {self._broker_id} is running already."
            ) from error
        found = self._repository.find_registration(self._broker_id)
        if found is None or not found.is_own:
            raise SessionExpiredError(f"the registration of broker {self._broker_id} is gone")
        self.epoch = found.broker.epoch
        directories.registered(self.epoch)
