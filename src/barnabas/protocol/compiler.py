"""Turns declarations into codecs: one Python function per (message, version), written and compiled on first use.

    encode(message, version) -> bytes
    decode(MessageClass, version, buffer, position) -> (message, end)
    encode_in_slices, decode_in_slices: the same as generators, for messages so large that others must be served between

`decode` takes bytes from strangers. Whatever they are, it returns or raises ProtocolError, and the memory it takes is
bounded by the length of the buffer. `encode` takes values from our own code: what the version cannot carry is
ValueError.
"""

import struct
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from barnabas.errors import ProtocolError
from barnabas.protocol.decoder_source import DecoderSource
from barnabas.protocol.encoder_source import EncoderSource
from barnabas.protocol.primitives import Buffer
from barnabas.protocol.schema import Schema

M = TypeVar("M")


def schema_of(message: Any) -> Schema:
    schema: Schema = message.__schema__
    return schema


def is_flexible(message: Any, version: int) -> bool:
    """Whether that version of the message uses compact forms and tagged fields (and so the longer headers)."""
    return version >= schema_of(message).flexible


def encode(message: Any, version: int) -> bytes:
    out = bytearray()
    encode_into(out, message, version)
    return bytes(out)


def encode_into(out: bytearray, message: Any, version: int) -> None:
    """Append the message; on failure `out` holds a part of it and is of no use."""
    encoder = message.__schema__.encoders.get(version) or _compile_encoder(type(message), version)
    try:
        encoder(message, out)
    except (struct.error, TypeError, AttributeError) as error:
        raise _not_encodable(message, version, error) from error


def encode_in_slices(out: bytearray, message: Any, version: int) -> Generator[None, None, None]:
    """`encode_into`, yielding wherever others may be served. The message must not change meanwhile."""
    encoder = message.__schema__.sliced_encoders.get(version) or _compile_encoder(type(message), version, sliced=True)
    try:
        steps = encoder(message, out)
        if steps is not None:
            yield from steps
    except (struct.error, TypeError, AttributeError) as error:
        raise _not_encodable(message, version, error) from error


def decode(message: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    schema = schema_of(message)
    decoder = schema.decoders.get(version) or _compile_decoder(message, version)
    try:
        decoded: tuple[M, int] = decoder(buffer, position)
        return decoded
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise _not_decodable(schema, version, error) from error


def decode_in_slices(
    message: type[M], version: int, buffer: Buffer, position: int = 0
) -> Generator[None, None, tuple[M, int]]:
    """`decode`, yielding wherever others may be served. The buffer must not change meanwhile."""
    schema = schema_of(message)
    decoder = schema.sliced_decoders.get(version) or _compile_decoder(message, version, sliced=True)
    try:
        steps = decoder(buffer, position)
        decoded: tuple[M, int] = steps if isinstance(steps, tuple) else (yield from steps)
        return decoded
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise _not_decodable(schema, version, error) from error


def _not_encodable(message: Any, version: int, error: Exception) -> ValueError:
    return ValueError(f"{schema_of(message).name} v{version} cannot hold these values: {error}")


def _not_decodable(schema: Schema, version: int, error: Exception) -> ProtocolError:
    if isinstance(error, UnicodeDecodeError):
        return ProtocolError(f"{schema.name} v{version} holds a string that is not UTF-8")
    return ProtocolError(f"{schema.name} v{version} is cut short: {error}")


def _compile_encoder(message: type[Any], version: int, sliced: bool = False) -> Callable[..., Any]:
    schema = schema_of(message)
    if not schema.min_version <= version <= schema.max_version:
        raise ValueError(f"{schema.name} has no version {version}")
    encoder: Callable[..., Any] = EncoderSource(version, version >= schema.flexible, sliced).compile(message)
    (schema.sliced_encoders if sliced else schema.encoders)[version] = encoder
    return encoder


def _compile_decoder(message: type[Any], version: int, sliced: bool = False) -> Callable[..., Any]:
    schema = schema_of(message)
    if not schema.min_version <= version <= schema.max_version:
        raise ProtocolError(f"{schema.name} has no version {version}")
    decoder: Callable[..., Any] = DecoderSource(version, version >= schema.flexible, sliced).compile(message)
    (schema.sliced_decoders if sliced else schema.decoders)[version] = decoder
    return decoder
