"""Reads the cluster's image from a store and writes the controller's records to it, each write conditional.

Called by `server/cluster_membership.py` in a thread, one call at a time. Every write checks the controller epoch under
which this broker was elected, so that a controller which has been replaced can write nothing, and the version of each
node it changes. It adds an entry to the change log in the same transaction, which the other brokers follow
(`changes_after`). A decision larger than the store takes at once is written in parts, each with an entry of its own.

If a write's outcome is unknown, the very same is sent again: it is conditional on the head of the change log, so that
it happens once at most, and its entry says whose it was.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.machines.controller.delta import ImageBuilder
from barnabas.machines.controller.image import NO_CONTROLLER, BrokerImage, ClusterImage
from barnabas.machines.controller.records import Record
from barnabas.metadata import acl_tree, token_tree, tree, tree_reading
from barnabas.metadata.change_codec import encode_change
from barnabas.metadata.change_log import TRIM_INTERVAL, ChangeLog
from barnabas.metadata.store import (
    BadVersionError,
    Check,
    ConflictError,
    Create,
    Delete,
    MetadataStore,
    MetadataStoreError,
    NodeExistsError,
    NoNodeError,
    Operation,
    OutcomeUnknownError,
    Set,
    StoreUnavailableError,
    size_of,
)
from barnabas.metadata.tree_changes import Change, TreeChanges, merged
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

_NEVER_ELECTED = -2
"""A version that no node has: whoever was not elected can write nothing."""
_BESIDE_CHANGES = 3
"""Operations of a transaction beside the changes: the check of the controller epoch, the entry, the head."""
MAX_ATTEMPTS = 3
MAX_ID_ATTEMPTS = 1000


class ControllerMovedError(MetadataStoreError):
    """Another broker has become controller; nothing was written."""


class Registration(NamedTuple):
    broker: BrokerImage
    is_own: bool
    """Made in this store's session."""


class MetadataRepository:
    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self._log = ChangeLog(store)
        self._controller_epoch = 0
        self._controller_epoch_version = _NEVER_ELECTED
        self._versions: dict[str, int] = {}

    def prepare(self, cluster_id: str) -> str:
        """Make what a new store lacks; returns the id the cluster has, which is the one given if it had none."""
        self.store.sync()
        nodes = [(path, b"") for path in tree.PERSISTENT]
        nodes += [(tree.CLUSTER_ID, tree.encode_cluster_id(cluster_id)), (tree.CONTROLLER_EPOCH, b"0")]
        found = self.store.get_many([path for path, _ in nodes])
        for (path, data), node in zip(nodes, found):
            if node is None:
                self._create_unless_there(path, data)
        self._log.prepare()
        node = self.store.get(tree.CLUSTER_ID)
        if node is None:
            raise MetadataStoreError(f"{tree.CLUSTER_ID} disappeared")
        return tree.decode_cluster_id(node.data)

    def register_broker(self, broker: BrokerImage, now_ms: int) -> None:
        """Raises NodeExistsError while another session holds the id.

        One with the same log directories is replaced: they are locked by this process, so that one is dead, and its
        session would only last until its time-out.
        """
        path = tree.broker_path(broker.node_id)
        registration = [Create(path, tree.encode_broker(broker, now_ms), ephemeral=True)]
        try:
            self._write_own(registration)
        except NodeExistsError:
            if not self._remove_predecessor(path, broker):
                raise
            self._write_own(registration)

    def _remove_predecessor(self, path: str, broker: BrokerImage) -> bool:
        node, controller = self.store.get_many([path, tree.CONTROLLER])
        if node is None:
            return True
        registered = tree.decode_broker(broker.node_id, node.data, node.created)
        if set(broker.directory_ids).isdisjoint(registered.directory_ids):
            return False
        logger.info("broker %d replaces its own registration of before", broker.node_id)
        # One by one: an engine may refuse to delete a node and create it again in the same transaction.
        self._delete_unless_gone(path, node.version)
        if controller is not None and controller.owner == node.owner:
            self._delete_unless_gone(tree.CONTROLLER, controller.version)
        return True

    def _delete_unless_gone(self, path: str, version: int) -> None:
        for _ in range(MAX_ATTEMPTS):
            try:
                self.store.delete(path, version)
                return
            except NoNodeError:
                return
            except OutcomeUnknownError:
                continue
        raise StoreUnavailableError(f"{path} could not be deleted")

    def generate_broker_id(self, reserved_max_id: int) -> NodeId:
        """An id above the reserved ones that no broker has, or has had unless it was unregistered."""
        for _ in range(MAX_ID_ATTEMPTS):
            self.store.sync()
            node = self.store.get(tree.BROKER_SEQUENCE)
            try:
                if node is None:
                    self.store.create(tree.BROKER_SEQUENCE)
                    continue
                # With the version: of two brokers that read the same number only one gets it.
                number = self.store.set(tree.BROKER_SEQUENCE, b"", node.version)
            except (ConflictError, OutcomeUnknownError):
                continue  # at worst a number is never used
            broker_id = NodeId(reserved_max_id + number)
            if not any(self.store.get_many([tree.broker_path(broker_id), tree.known_broker_path(broker_id)])):
                return broker_id
        raise StoreUnavailableError(f"no broker id could be generated at {tree.BROKER_SEQUENCE}")

    def find_registration(self, broker_id: NodeId) -> Registration | None:
        node = self.store.get(tree.broker_path(broker_id))
        if node is None:
            return None
        broker = tree.decode_broker(broker_id, node.data, node.created)
        return Registration(broker, node.owner == self.store.session_id)

    def remove_registration(self, broker_id: NodeId, epoch: int) -> None:
        """A broker's process is known to be dead: end its registration and its being controller before its session."""
        found, controller = self.store.get_many([tree.broker_path(broker_id), tree.CONTROLLER])
        if found is None or found.created != epoch:
            return
        self._delete_unless_gone(tree.broker_path(broker_id), found.version)
        if controller is not None and controller.owner == found.owner:
            self._delete_unless_gone(tree.CONTROLLER, controller.version)

    def try_become_controller(self, broker_id: NodeId, now_ms: int) -> int | None:
        """Stand for election; returns the controller epoch won, or None if there is a controller."""
        node = self.store.get(tree.CONTROLLER_EPOCH)
        if node is None:
            raise NoNodeError(tree.CONTROLLER_EPOCH)
        epoch = int(node.data or b"0") + 1
        try:
            self._write_own(
                [
                    Create(tree.CONTROLLER, tree.encode_controller(broker_id, now_ms), ephemeral=True),
                    Set(tree.CONTROLLER_EPOCH, str(epoch).encode(), node.version),
                ]
            )
        except (NodeExistsError, BadVersionError):
            return None
        self._controller_epoch, self._controller_epoch_version = epoch, node.version + 1
        return epoch

    def resign(self) -> None:
        """Give the controller node back, so that another election can happen at once."""
        node = self.store.get(tree.CONTROLLER)
        if node is not None and node.owner == self.store.session_id:
            self.store.delete(tree.CONTROLLER, node.version)

    def load_brokers(self) -> tuple[BrokerImage, ...]:
        """The brokers that are registered."""
        return tuple(tree_reading.read_brokers(self.store.scan(tree.BROKER_IDS).nodes).values())

    def current_controller(self, broker_id: NodeId) -> tuple[int, int]:
        """Id and epoch, as `broker_id` sees them: what a dead predecessor of its own left behind is removed."""
        node = self.store.get(tree.CONTROLLER)
        if node is not None and tree.decode_controller(node.data) == broker_id and node.owner != self.store.session_id:
            self._delete_unless_gone(tree.CONTROLLER, node.version)
        return self.load_controller()

    def load_controller(self) -> tuple[int, int]:
        controller, epoch = self.store.get_many([tree.CONTROLLER, tree.CONTROLLER_EPOCH])
        return (
            NO_CONTROLLER if controller is None else tree.decode_controller(controller.data),
            0 if epoch is None else int(epoch.data or b"0"),
        )

    def load(self, cluster_id: str) -> ClusterImage:
        """Everything, up to the newest entry of the change log."""
        self.store.sync()
        for _ in range(MAX_ATTEMPTS):
            image = self._with_later_changes(self._load_tree(cluster_id))
            if image is not None:
                return image
        raise MetadataStoreError("the metadata changes faster than it can be loaded")

    def changes_after(self, number: int) -> list[tuple[int, tuple[Record, ...]]] | None:
        """The entries of the change log after `number`; None if some of them are gone: load everything again."""
        return self._log.after(number)

    def write(self, records: Sequence[Record], image: ClusterImage) -> int:
        """Write records decided on `image`, the state before them; returns the number of the last entry.

        Raises ConflictError, ControllerMovedError, or OutcomeUnknownError: then load before anything else is decided.
        """
        before = self._log.number
        changes = TreeChanges(self.store, self._versions, image, self._controller_epoch)
        self._commit_in_parts(changes.of(records))
        number = self._log.number
        if number // TRIM_INTERVAL != before // TRIM_INTERVAL:
            self._trim()
        return number

    def complete_deletions(self) -> None:
        """Finish what a crash interrupted: topics that are marked as deleted but still have nodes."""
        for name in self.store.children(tree.DELETE_TOPICS):
            changes = TreeChanges(self.store, self._versions, ClusterImage(), self._controller_epoch)
            self._commit_in_parts(changes.removal(name))

    def _load_tree(self, cluster_id: str) -> ClusterImage:
        number = self._log.read_head()
        marked = self.store.children(tree.DELETE_TOPICS)
        nodes = self.store.scan(tree.BROKERS).nodes
        configs = self.store.scan(tree.CONFIG).nodes
        known = self.store.scan(tree.KNOWN_BROKERS).nodes
        acls = {path: node for root in acl_tree.ROOTS for path, node in self.store.scan(root).nodes.items()}
        quotas = self.store.scan(tree.QUOTAS).nodes
        tokens = self.store.scan(token_tree.TOKENS).nodes
        others = [tree.PRODUCER_IDS, tree.FOLDERS_ADOPTED]
        producer_ids, adopted = self.store.get_many(others)
        self._versions = tree_reading.versions_of({**nodes, **configs, **known, **acls, **quotas, **tokens})
        self._versions |= {path: node.version for path, node in zip(others, (producer_ids, adopted)) if node}
        brokers = tree_reading.read_known_brokers(known)
        topics = tree_reading.read_topics(nodes, marked)
        controller_id, controller_epoch = self.load_controller()
        return ClusterImage(
            cluster_id=cluster_id,
            controller_id=controller_id,
            controller_epoch=controller_epoch,
            brokers={each: broker for each, broker in brokers.items() if not broker.is_fenced},
            fenced_brokers={each: broker for each, broker in brokers.items() if broker.is_fenced},
            topics=topics,
            topic_names={topic.topic_id: topic.name for topic in topics.values()},
            configs=tree_reading.read_configs(configs),
            acls=acl_tree.read_acls(acls),
            client_quotas=tree_reading.read_quotas(quotas),
            tokens=token_tree.read_tokens(tokens),
            next_producer_id=0 if producer_ids is None else tree.decode_next_producer_id(producer_ids.data),
            folders_adopted=adopted is not None,
            change_number=number,
        )

    def _with_later_changes(self, image: ClusterImage) -> ClusterImage | None:
        """What was written while the tree was read is in the image in part: applied again, it is there entirely."""
        builder = ImageBuilder(image)
        while entries := self._log.after(builder.image.change_number):
            for number, records in entries:
                builder.apply_change(number, records)
        return None if entries is None else builder.image

    def _commit_in_parts(self, changes: Iterable[Change]) -> None:
        """Pack changes into as few transactions as the store's limits allow."""
        part: list[Change] = []
        paths: set[str] = set()
        size = 0
        for change in changes:
            added = [operation.path for operation in change.operations]
            added_size = sum(map(size_of, change.operations))
            is_full = len(paths) + len(added) + _BESIDE_CHANGES > self.store.multi_limit
            # The entry repeats the changes, so half of the bytes are left for it.
            if part and (is_full or size + added_size > self.store.max_bytes // 2 or not paths.isdisjoint(added)):
                self._commit(part)
                part, paths, size = [], set(), 0
            part.append(change)
            paths.update(added)
            size += added_size
        if part:
            self._commit(part)

    def _commit(self, changes: Sequence[Change]) -> None:
        operations: list[Operation] = [Check(tree.CONTROLLER_EPOCH, self._controller_epoch_version)]
        operations += [operation for change in changes for operation in change.operations]
        records = merged([change.record for change in changes if change.record is not None])
        entry = encode_change(records, self._controller_epoch) if records else None
        if entry is not None:
            operations += self._log.appending(entry)
        self._write_once(operations, entry)
        for operation in operations:
            if isinstance(operation, Set) and operation.path in self._versions:
                self._versions[operation.path] += 1
            elif isinstance(operation, Create) and not operation.path.endswith("/state"):
                self._versions[operation.path] = 0
            elif isinstance(operation, Delete):
                self._versions.pop(operation.path, None)
        if entry is not None:
            self._log.on_appended()

    def _write_once(self, operations: Sequence[Operation], entry: bytes | None) -> None:
        uncertain = False
        for _ in range(MAX_ATTEMPTS):
            try:
                self.store.multi(operations)
                return
            except OutcomeUnknownError as error:
                logger.warning("a change of the metadata may have been written or not: %s", error)
                uncertain = True
            except StoreUnavailableError:
                if not uncertain:
                    raise
            except ConflictError as error:
                # After an uncertain attempt this may be what that one did.
                if not (uncertain and self._has_happened(entry)):
                    if error.path == tree.CONTROLLER_EPOCH:
                        raise ControllerMovedError(f"controller epoch {self._controller_epoch} is over") from error
                    raise
                return
            if self._has_happened(entry):
                return
        raise OutcomeUnknownError("a change of the metadata may have been written or not, and cannot be looked up")

    def _has_happened(self, entry: bytes | None) -> bool:
        if entry is None:
            return False
        try:
            self.store.sync()
            return self._log.has(entry)
        except StoreUnavailableError:
            return False

    def _trim(self) -> None:
        try:
            surplus = self._log.surplus()
            for start in range(0, len(surplus), self.store.multi_limit):
                self.store.multi(surplus[start : start + self.store.multi_limit])
        except (ConflictError, StoreUnavailableError, OutcomeUnknownError) as error:
            logger.info("old entries of the change log were not removed, the next time will do: %s", error)

    def _create_unless_there(self, path: str, data: bytes) -> None:
        for _ in range(MAX_ATTEMPTS):
            try:
                self.store.create(path, data)
                return
            except NodeExistsError:
                return
            except OutcomeUnknownError:
                continue
        raise StoreUnavailableError(f"{path} could not be created")

    def _write_own(self, operations: Sequence[Operation]) -> None:
        """Of which the first creates an ephemeral node: its owner shows who did it."""
        uncertain = False
        for _ in range(MAX_ATTEMPTS):
            try:
                self.store.multi(operations)
                return
            except OutcomeUnknownError:
                uncertain = True
            except ConflictError:
                node = self.store.get(operations[0].path) if uncertain else None
                if node is None or node.owner != self.store.session_id:
                    raise
                return
        raise OutcomeUnknownError(f"{operations[0].path} may have been created or not")
