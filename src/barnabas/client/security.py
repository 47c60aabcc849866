"""TLS for clients: the context that the options describe."""

import os
import ssl
import tempfile

from barnabas.client.errors import ConfigError
from barnabas.client.options.security import SecurityOptions

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(options: SecurityOptions) -> ssl.SSLContext:
    """Raises ConfigError where a file cannot be read or a key does not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.ssl_endpoint_identification_algorithm.lower() == "https"
    context.verify_mode = ssl.CERT_REQUIRED
    allowed = [VERSIONS[name] for name in options.ssl_enabled_protocols]
    context.minimum_version = min(allowed)
    context.maximum_version = min(max(allowed), VERSIONS[options.ssl_protocol])
    faults: list[str] = []
    if context.maximum_version < context.minimum_version:
        faults.append("ssl_protocol: not among ssl_enabled_protocols")
    _trust(context, options, faults)
    _show(context, options, faults)
    if options.ssl_cipher_suites:
        try:
            context.set_ciphers(":".join(options.ssl_cipher_suites))
        except ssl.SSLError:
            faults.append("ssl_cipher_suites: none of these is known to OpenSSL")
    if faults:
        raise ConfigError(faults)
    return context


def _trust(context: ssl.SSLContext, options: SecurityOptions, faults: list[str]) -> None:
    try:
        if options.ssl_truststore_location is not None:
            context.load_verify_locations(cafile=options.ssl_truststore_location)
        elif options.ssl_truststore_certificates is not None:
            context.load_verify_locations(cadata=options.ssl_truststore_certificates)
        else:
            context.load_default_certs()
    except ssl.SSLError:
        faults.append("ssl_truststore: no certificate in PEM form")
    except OSError as error:
        faults.append(f"ssl_truststore_location: {options.ssl_truststore_location}: {error.strerror}")


def _show(context: ssl.SSLContext, options: SecurityOptions, faults: list[str]) -> None:
    """This client's own certificate, where brokers ask for one."""
    password = options.ssl_key_password or ""
    try:
        if options.ssl_keystore_location is not None:
            context.load_cert_chain(options.ssl_keystore_location, password=lambda: password)
        elif options.ssl_keystore_key is not None and options.ssl_keystore_certificate_chain is not None:
            _load_texts(context, options.ssl_keystore_key, options.ssl_keystore_certificate_chain, password)
    except ssl.SSLError:
        faults.append("ssl_keystore: no key with its certificate in PEM form, or ssl_key_password is wrong")
    except OSError as error:
        faults.append(f"ssl_keystore_location: {options.ssl_keystore_location}: {error.strerror}")


def _load_texts(context: ssl.SSLContext, key: str, chain: str, password: str) -> None:
    """OpenSSL reads a key from a file only: it gets one that nobody else may read, for as long as that takes."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n{chain}\n")
        context.load_cert_chain(path, password=lambda: password)
    finally:
        os.unlink(path)
