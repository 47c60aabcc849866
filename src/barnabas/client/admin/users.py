"""Users and what they may use up: SCRAM credentials (KIP-554) and quotas (KIP-546).

A password is salted and hashed here, so that the brokers never see it.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.requests import AdminRequests, several
from barnabas.client.admin.types import QuotaEntity, ScramCredential, ScramDeletion, ScramMechanism, ScramUpsertion
from barnabas.errors import KafkaError
from barnabas.machines.sasl.scram import SALT_BYTES
from barnabas.protocol.messages import alter_client_quotas as quota_messages
from barnabas.protocol.messages import alter_user_scram_credentials as scram_messages
from barnabas.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY = 0, 1, 2
_KINDS = {"user": "user", "client_id": "client-id", "ip": "ip"}
_HASHES = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}


@dataclass(frozen=True, slots=True)
class UserAdmin:
    """SCRAM credentials and quotas."""

    requests: AdminRequests

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Mechanisms and iterations of users, all that have a credential or these."""
        deadline = self.requests.deadline(timeout)
        wanted = None if users is None else several(users)

        async def send_to(node_id: int) -> dict[str, tuple[ScramCredential, ...] | KafkaError]:
            named = None if wanted is None else [UserName(name=each) for each in wanted]
            response = await self.requests.send(node_id, DescribeUserScramCredentialsRequest(users=named), deadline)
            check(response.error_code, response.error_message)
            return {
                result.user: admin_error(result.error_code, result.error_message)
                if result.error_code
                else tuple(
                    ScramCredential(mechanism=ScramMechanism(each.mechanism), iterations=each.iterations)
                    for each in result.credential_infos
                )
                for result in response.results
            }

        results = await self.requests.call(self.requests.any_node, send_to, deadline)
        outcome: Outcome[str, tuple[ScramCredential, ...]] = Outcome()
        for user, result in results.items():
            if isinstance(result, KafkaError):
                outcome.errors[user] = result
            else:
                outcome.results[user] = result
        return outcome.all()

    async def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsertion | ScramDeletion], *, timeout: float | None = None
    ) -> None:
        """Set or delete SCRAM credentials; each (user, mechanism) on its own."""
        deadline = self.requests.deadline(timeout)
        by_key: dict[tuple[str, ScramMechanism], ScramUpsertion | ScramDeletion] = {
            (change.user, change.mechanism): change for change in changes
        }

        async def send_to(
            node_id: int, requested: list[tuple[str, ScramMechanism]]
        ) -> Mapping[tuple[str, ScramMechanism], bool | KafkaError]:
            results: dict[tuple[str, ScramMechanism], bool | KafkaError] = {}
            # Kafka refuses a request that names a user twice, be it for two mechanisms.
            for mechanism in ScramMechanism:
                keys = [key for key in requested if key[1] is mechanism]
                if keys:
                    response = await self.requests.send(
                        node_id, _scram_request(map(by_key.__getitem__, keys)), deadline
                    )
                    for each in response.results:
                        refused = each.error_code and admin_error(each.error_code, each.error_message)
                        results[each.user, mechanism] = refused or True
            return results

        on_retry = self.requests.forget_controller
        outcome: Outcome[tuple[str, ScramMechanism], bool] = await self.requests.call_each(
            by_key, self.requests.on_controller, send_to, deadline, on_retry=on_retry
        )
        outcome.all()

    async def describe_client_quotas(
        self, entity: QuotaEntity | None = None, *, strict: bool = False, timeout: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Quotas by whom they are for: all, or those whose parts match.

        In `entity`, "*" matches every name of a kind and "" its default. `strict`: of no other kinds besides.
        """
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> dict[QuotaEntity, dict[str, float]]:
            request = DescribeClientQuotasRequest(components=_components(entity or QuotaEntity()), strict=strict)
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code, response.error_message)
            return {
                _entity((part.entity_type, part.entity_name) for part in entry.entity): {
                    each.key: each.value for each in entry.values
                }
                for entry in response.entries or ()
            }

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Set quotas ("producer_byte_rate", ...); None removes one."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[QuotaEntity]) -> Mapping[QuotaEntity, bool | KafkaError]:
            request = quota_messages.AlterClientQuotasRequest(
                entries=[_quota_entry(entity, changes[entity]) for entity in requested], validate_only=validate_only
            )
            response = await self.requests.send(node_id, request, deadline)
            return {
                _entity((part.entity_type, part.entity_name) for part in entry.entity): (
                    admin_error(entry.error_code, entry.error_message) if entry.error_code else True
                )
                for entry in response.entries
            }

        on_retry = self.requests.forget_controller
        outcome: Outcome[QuotaEntity, bool] = await self.requests.call_each(
            changes, self.requests.on_any_node, send_to, deadline, on_retry=on_retry
        )
        outcome.all()


def _scram_request(
    changes: Iterable[ScramUpsertion | ScramDeletion],
) -> scram_messages.AlterUserScramCredentialsRequest:
    request = scram_messages.AlterUserScramCredentialsRequest()
    for change in changes:
        if isinstance(change, ScramUpsertion):
            request.upsertions.append(_upsertion(change))
        else:
            deletion = scram_messages.ScramCredentialDeletion(name=change.user, mechanism=change.mechanism)
            request.deletions.append(deletion)
    return request


def _upsertion(change: ScramUpsertion) -> scram_messages.ScramCredentialUpsertion:
    salt = os.urandom(SALT_BYTES) if change.salt is None else change.salt
    salted = hashlib.pbkdf2_hmac(_HASHES[change.mechanism], change.password.encode(), salt, change.iterations)
    return scram_messages.ScramCredentialUpsertion(
        name=change.user,
        mechanism=change.mechanism,
        iterations=change.iterations,
        salt=salt,
        salted_password=salted,
    )


def _components(entity: QuotaEntity) -> list[ComponentData]:
    matches = {"*": MATCH_ANY, "": MATCH_DEFAULT}
    return [
        ComponentData(
            entity_type=_KINDS[field],
            match_type=matches.get(name, MATCH_EXACT),
            match=None if name in matches else name,
        )
        for field, name in entity._asdict().items()
        if name is not None
    ]


def _quota_entry(entity: QuotaEntity, values: Mapping[str, float | None]) -> quota_messages.EntryData:
    return quota_messages.EntryData(
        entity=[
            quota_messages.EntityData(entity_type=_KINDS[field], entity_name=name or None)
            for field, name in entity._asdict().items()
            if name is not None
        ],
        ops=[
            quota_messages.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
            for key, value in values.items()
        ],
    )


def _entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    fields = {kind: field for field, kind in _KINDS.items()}
    return QuotaEntity(**{fields[kind]: name or "" for kind, name in parts if kind in fields})
