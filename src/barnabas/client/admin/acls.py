"""Access rules: list, add, remove. Any broker serves them; without an authorizer it returns SECURITY_DISABLED."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from barnabas.errors import KafkaError
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsMatchingAcl, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest


@dataclass(frozen=True, slots=True)
class AclAdmin:
    """Access rules of the cluster."""

    requests: AdminRequests

    async def describe_acls(self, filter: AclFilter | None = None, *, timeout: float | None = None) -> list[AclBinding]:
        """The rules that match; all of them without a filter."""
        deadline = self.requests.deadline(timeout)
        wanted = filter or AclFilter()

        async def send_to(node_id: int) -> list[AclBinding]:
            request = DescribeAclsRequest(
                resource_type_filter=wanted.resource_type,
                resource_name_filter=wanted.resource_name,
                pattern_type_filter=wanted.pattern_type,
                principal_filter=wanted.principal,
                host_filter=wanted.host,
                operation=wanted.operation,
                permission_type=wanted.permission,
            )
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code, response.error_message)
            return [
                AclBinding(
                    resource_type=ResourceType(resource.resource_type),
                    resource_name=resource.resource_name,
                    pattern_type=PatternType(resource.pattern_type),
                    principal=each.principal,
                    host=each.host,
                    operation=AclOperation(each.operation),
                    permission=AclPermission(each.permission_type),
                )
                for resource in response.resources
                for each in resource.acls
            ]

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def create_acls(self, bindings: Iterable[AclBinding], *, timeout: float | None = None) -> None:
        """Add rules; one that is there already is fine."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[AclBinding]) -> Mapping[AclBinding, bool | KafkaError]:
            response = await self.requests.send(
                node_id, CreateAclsRequest(creations=list(map(_creation, requested))), deadline
            )
            return {
                binding: admin_error(result.error_code, result.error_message) if result.error_code else True
                for binding, result in zip(requested, response.results)
            }

        on_retry = self.requests.forget_controller
        outcome: Outcome[AclBinding, bool] = await self.requests.call_each(
            bindings, self.requests.on_any_node, send_to, deadline, on_retry=on_retry
        )
        outcome.all()

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout: float | None = None
    ) -> dict[AclFilter, list[AclBinding]]:
        """Remove the rules that match; gives those that were removed, by filter."""
        deadline = self.requests.deadline(timeout)

        async def send_to(
            node_id: int, requested: list[AclFilter]
        ) -> Mapping[AclFilter, list[AclBinding] | KafkaError]:
            response = await self.requests.send(
                node_id, DeleteAclsRequest(filters=list(map(_filter, requested))), deadline
            )
            results: dict[AclFilter, list[AclBinding] | KafkaError] = {}
            for each, result in zip(requested, response.filter_results):
                failed = [(acl.error_code, acl.error_message) for acl in result.matching_acls if acl.error_code]
                if result.error_code:
                    failed = [(result.error_code, result.error_message)]
                results[each] = admin_error(*failed[0]) if failed else list(map(_binding, result.matching_acls))
            return results

        return (await self.requests.call_each(filters, self.requests.on_any_node, send_to, deadline)).all()


def _creation(binding: AclBinding) -> AclCreation:
    return AclCreation(
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        resource_pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


def _filter(wanted: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )


def _binding(acl: DeleteAclsMatchingAcl) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=PatternType(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=AclOperation(acl.operation),
        permission=AclPermission(acl.permission_type),
    )
