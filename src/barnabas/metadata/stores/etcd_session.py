"""A session with etcd: a lease that a thread keeps alive.

The session is lost when etcd says that the lease is gone, not before: as long as no node of etcd responds, nobody else
can take over either. The keep-alive is also the health check of the host that is used: a node that is frozen, or cut
off from the others, does not renew a lease, so all connections of the store move on to the next host.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from barnabas.metadata.store import MetadataStoreError, SessionListener, SessionState
from barnabas.metadata.stores.etcd_client import NOT_FOUND, EtcdClient, EtcdError, EtcdHosts

logger = logging.getLogger(__name__)

RENEWALS_PER_TTL: Final = 4
REVOKE_TIMEOUT_S: Final = 1.0


class EtcdSession:
    """Starts with `begin`; `on_lost` is called once, from the thread."""

    def __init__(self, hosts: EtcdHosts, on_state: SessionListener, on_lost: Callable[[], None]) -> None:
        self.lease_id = 0
        self.is_lost = False
        self._client = EtcdClient(hosts)
        self._on_state = on_state
        self._on_lost = on_lost
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_suspended = False

    def begin(self, ttl_s: int, timeout_s: float) -> None:
        try:
            response = self._client.read("lease/grant", {"TTL": str(ttl_s)}, timeout_s)
        except BaseException:
            self._client.close()
            raise
        self.lease_id = int(response["ID"])
        granted_s = int(response["TTL"])
        self._thread = threading.Thread(
            target=self._keep_alive, args=(granted_s / RENEWALS_PER_TTL,), name="metadata-lease", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """The ephemeral nodes disappear, at once if etcd can be reached."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        if not self.is_lost and self.lease_id:
            try:
                self._client.read("lease/revoke", {"ID": str(self.lease_id)}, REVOKE_TIMEOUT_S)
            except MetadataStoreError as error:
                if not isinstance(error, EtcdError) or error.code != NOT_FOUND:
                    logger.warning("the session with etcd ends by itself, since it cannot be ended: %s", error)
        self.is_lost = True
        self._client.close()

    def _keep_alive(self, interval_s: float) -> None:
        while not self._ending.wait(interval_s / 4 if self._is_suspended else interval_s):
            try:
                # One attempt, so that a host that does not respond is left after a quarter of the time.
                response = self._client.write("lease/keepalive", {"ID": str(self.lease_id)}, interval_s)
                remaining_s = int(response.get("result", {}).get("TTL", 0))
            except EtcdError as error:
                if error.code != NOT_FOUND:
                    self._suspend(error)
                    continue
                remaining_s = 0
            except MetadataStoreError as error:
                self._suspend(error)
                continue
            if remaining_s <= 0:
                self._lose()
                return
            if self._is_suspended:
                self._is_suspended = False
                self._on_state(SessionState.CONNECTED)

    def _suspend(self, error: MetadataStoreError) -> None:
        if not self._is_suspended:
            self._is_suspended = True
            logger.warning("the session with etcd cannot be renewed for now: %s", error)
            self._on_state(SessionState.SUSPENDED)

    def _lose(self) -> None:
        self.is_lost = True
        logger.warning("the session with etcd is over")
        self._on_state(SessionState.LOST)
        self._on_lost()
