"""Java's key stores (JKS, PKCS12) among the options: rejected on the driver, with commands to convert them to PEM."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

_SUFFIXES: Final = {".jks": "JKS", ".p12": "PKCS12", ".pfx": "PKCS12", ".pkcs12": "PKCS12"}
_JAVA_TYPES: Final = ("JKS", "PKCS12")


def key_store_faults(client: Mapping[str, str]) -> list[str]:
    """One line per store. `client` has Kafka's dotted names."""
    faults = []
    for which, convert in (("truststore", _trust_commands), ("keystore", _key_commands)):
        location = client.get(f"ssl.{which}.location", "")
        kind = client.get(f"ssl.{which}.type", "").upper() or _SUFFIXES.get(PurePath(location).suffix.lower(), "")
        if kind in _JAVA_TYPES:
            name = "type" if f"ssl.{which}.type" in client else "location"
            commands, pem = convert(location or f"{which}.jks", kind)
            faults.append(
                f"kafka.ssl.{which}.{name}: a {kind} store can only be read by Java; convert it to PEM with {commands},"
                f" then set kafka.ssl.{which}.location={pem} and neither ssl.{which}.type nor ssl.{which}.password"
            )
    return faults


def _trust_commands(location: str, kind: str) -> tuple[str, str]:
    pem = str(PurePath(location).with_suffix(".pem"))
    return f"`keytool -list -rfc -keystore {location} > {pem}`", pem


def _key_commands(location: str, kind: str) -> tuple[str, str]:
    path = PurePath(location)
    pem, pkcs12 = str(path.with_suffix(".pem")), str(path.with_suffix(".p12"))
    extract = f"`openssl pkcs12 -in {location if kind == 'PKCS12' else pkcs12} -nodes -out {pem}`"
    if kind == "PKCS12":
        return extract, pem
    return (
        f"`keytool -importkeystore -srckeystore {location} -destkeystore {pkcs12} -deststoretype PKCS12` and {extract}",
        pem,
    )
