"""The TLS contexts of a listener, from its settings: for those who connect to it, and for this broker where it connects
to the same listener of others. Keys and certificates are PEM, in files or as text.

Raises ConfigFaults with everything that is wrong, without anything of a key or a password.
"""

import os
import re
import ssl
import tempfile

from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults, Fault

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]+-----)(.*?)(-----END [A-Z0-9 ]+-----)", re.DOTALL)


def server_context(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    """`config` as it holds for the listener (`for_listener`)."""
    prefix = f"listener {listener}: "
    faults: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _limit_versions(context, config, prefix, faults)
    context.verify_mode = CLIENT_AUTH[config.ssl_client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, config, prefix, faults)
    _present(context, config, prefix, faults)
    _choose_ciphers(context, config, prefix, faults)
    if faults:
        raise ConfigFaults(faults)
    return context


def link_context(config: BrokerConfig, listener: str) -> ssl.SSLContext:
    """For connections to the listener of other brokers: the same keys, certificates and authorities."""
    prefix = f"listener {listener}: "
    faults: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.check_hostname = config.ssl_endpoint_identification_algorithm.lower() == "https"
    _limit_versions(context, config, prefix, faults)
    if config.ssl_truststore_location is None and config.ssl_truststore_certificates is None:
        context.load_default_certs()
    else:
        _trust(context, config, prefix, faults)
    _present(context, config, prefix, faults)
    _choose_ciphers(context, config, prefix, faults)
    if faults:
        raise ConfigFaults(faults)
    return context


def _limit_versions(context: ssl.SSLContext, config: BrokerConfig, prefix: str, faults: list[str]) -> None:
    versions = [VERSIONS[name] for name in config.ssl_enabled_protocols if name in VERSIONS]
    if len(versions) < len(config.ssl_enabled_protocols) or not versions:
        faults.append(Fault("ssl.enabled.protocols", f"{prefix}only {' and '.join(VERSIONS)} can be enabled"))
    else:
        context.minimum_version, context.maximum_version = min(versions), max(versions)


def _choose_ciphers(context: ssl.SSLContext, config: BrokerConfig, prefix: str, faults: list[str]) -> None:
    if config.ssl_cipher_suites:
        try:
            context.set_ciphers(":".join(config.ssl_cipher_suites))
        except ssl.SSLError:
            faults.append(Fault("ssl.cipher.suites", f"{prefix}OpenSSL knows none of these (it has names of its own)"))


def _present(context: ssl.SSLContext, config: BrokerConfig, prefix: str, faults: list[str]) -> None:
    """The broker's own key and certificates."""
    password = config.ssl_key_password or ""
    name = "ssl.keystore.location"
    try:
        if config.ssl_keystore_location is not None:
            context.load_cert_chain(config.ssl_keystore_location, password=lambda: password)
        else:
            name = "ssl.keystore.key"
            text = f"{config.ssl_keystore_key}\n{config.ssl_keystore_certificate_chain}"
            _load_text(context, "\n".join(_blocks(text)), password)
    except ssl.SSLError:
        faults.append(Fault(name, f"{prefix}no key with its certificates in PEM form, or ssl.key.password is wrong"))
    except OSError as error:
        faults.append(Fault(name, f"{prefix}{config.ssl_keystore_location}: {error.strerror}"))


def _trust(context: ssl.SSLContext, config: BrokerConfig, prefix: str, faults: list[str]) -> None:
    name = "ssl.truststore.location"
    try:
        if config.ssl_truststore_location is not None:
            context.load_verify_locations(cafile=config.ssl_truststore_location)
        else:
            name = "ssl.truststore.certificates"
            context.load_verify_locations(cadata="\n".join(_blocks(config.ssl_truststore_certificates or "")))
    except (ssl.SSLError, ValueError):
        faults.append(Fault(name, f"{prefix}no certificate in PEM form"))
    except OSError as error:
        faults.append(Fault(name, f"{prefix}{config.ssl_truststore_location}: {error.strerror}"))


def _blocks(text: str) -> list[str]:
    """In a properties file the lines of a PEM block may be joined by spaces, which OpenSSL does not take."""
    return [f"{begin}\n{_lines(body)}\n{end}" for begin, body, end in BLOCK.findall(text)]


def _lines(body: str) -> str:
    if ":" in body:
        return body.strip()  # headers of an old form of encrypted key, where lines matter
    encoded = "".join(body.split())
    return "\n".join(encoded[start : start + 64] for start in range(0, len(encoded), 64))


def _load_text(context: ssl.SSLContext, text: str, password: str) -> None:
    """OpenSSL reads a key from a file only: it gets one that nobody else may read, for as long as that takes."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        context.load_cert_chain(path, password=lambda: password)
    finally:
        os.unlink(path)
