"""Which APIs and versions a broker speaks: asked once on each new connection, before anything else (KIP-511, KIP-584).

A broker that does not know our version of ApiVersions responds in version 0 with UNSUPPORTED_VERSION, and from Kafka
2.4 on with the range it knows; then it is asked again in the newest version that both know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from barnabas import __version__
from barnabas.client.errors import UnreachableError, UnsupportedVersionError, error_for
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.message_types import request_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.schema import Schema

SOFTWARE_NAME = "barnabas"
NEWEST = 4


class Requests(Protocol):
    """As much of a connection as is needed to ask."""

    address: str

    async def request(self, api_key: int, version: int, *parts: bytes) -> memoryview: ...


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """The versions that one broker supports."""

    address: str
    ranges: Mapping[int, tuple[int, int]]
    """API key -> lowest and highest version."""
    features: Mapping[str, int]
    """Finalized feature -> its highest level."""
    features_epoch: int = -1

    def pick(self, api_key: ApiKey, *, min_version: int = 0, max_version: int | None = None) -> int:
        """The newest version that the broker, this package and the caller know. Raises UnsupportedVersionError."""
        schema: Schema = request_type(api_key).__schema__
        least = max(min_version, schema.min_version)
        most = schema.max_version if max_version is None else min(max_version, schema.max_version)
        served = self.ranges.get(api_key)
        if served is None:
            text = f"{self.address} does not offer {_title(api_key)}: use a newer broker"
            raise UnsupportedVersionError(text, missing_api=api_key)
        if min(most, served[1]) < max(least, served[0]):
            raise UnsupportedVersionError(
                f"{self.address} speaks {_title(api_key)} v{served[0]}-v{served[1]}, but v{least}-v{most} is needed:"
                f" use {'a newer broker' if served[1] < least else 'a newer client'}"
            )
        return min(most, served[1])

    def offers(self, api_key: ApiKey) -> bool:
        return api_key in self.ranges

    def encode(self, request: Any, version: int) -> bytes:
        """The request in that version. Raises UnsupportedVersionError if only a newer one can say this.

        A value that no version can hold, a text for a number for instance, is the caller's mistake: TypeError.
        """
        try:
            return encode(request, version)
        except ValueError as error:
            if error.__cause__ is None or ("NoneType" in str(error) and _later_version_holds(request, version)):
                raise UnsupportedVersionError(f"{self.address} is too old for this: {error}") from error
            raise TypeError(str(error)) from error


async def ask_versions(connection: Requests) -> BrokerVersions:
    """Raises UnreachableError where the peer does not respond as a broker would."""
    response = await _ask(connection, NEWEST)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        own = next((api for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS), None)
        response = await _ask(connection, 0 if own is None else max(0, min(NEWEST - 1, own.max_version)))
    if response.error_code:
        raise error_for(response.error_code, f"{connection.address} did not say which versions it speaks")
    return BrokerVersions(
        connection.address,
        MappingProxyType({api.api_key: (api.min_version, api.max_version) for api in response.api_keys}),
        MappingProxyType({each.name: each.max_version_level for each in response.finalized_features}),
        response.finalized_features_epoch,
    )


async def _ask(connection: Requests, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    body = await connection.request(ApiKey.API_VERSIONS, version, encode(request, version))
    if body[:2] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
        version = 0
    try:
        return decode(ApiVersionsResponse, version, body)[0]
    except ProtocolError as error:
        raise UnreachableError(connection.address, f"the response is not that of a Kafka broker ({error})") from error


def _later_version_holds(request: Any, version: int) -> bool:
    """Some fields take null from a certain version on; anything else that is wrong is wrong in all versions."""
    for later in range(version + 1, request.__schema__.max_version + 1):
        try:
            encode(request, later)
        except ValueError:
            continue
        return True
    return False


def _title(api_key: ApiKey) -> str:
    return "".join(word.capitalize() for word in api_key.name.split("_"))
