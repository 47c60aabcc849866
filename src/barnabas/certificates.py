"""Certificates for development and tests: an authority of one's own, and what it signs. PEM in, PEM out.

Used by `barnabas certificate` and `barnabas.testing`. Needs the package cryptography, which is imported on first use.
Keys are ECDSA on P-256: a handshake costs half of what it does with RSA.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

INSTALL_HINT = "certificates are made with the package cryptography: pip install 'barnabas[tls-tools]'"
BACKDATED = datetime.timedelta(hours=1)
"""So that a machine whose clock is a little behind takes a new certificate."""


class MissingToolsError(Exception):
    """The package that makes certificates is not installed; the text says how to get it."""


class KeyPair(NamedTuple):
    key: str
    """The private key, not encrypted."""
    certificate: str

    @property
    def store(self) -> str:
        """Both in one text, as ssl.keystore.location wants it."""
        return self.key + self.certificate

    def __repr__(self) -> str:
        return "KeyPair()"


class Authority:
    """Signs the certificates of brokers and clients. Raises MissingToolsError, ValueError for PEM that is none."""

    def __init__(self, pair: KeyPair) -> None:
        _check_tools()
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        self.pair = pair
        key = load_pem_private_key(pair.key.encode(), None)
        if not isinstance(key, EllipticCurvePrivateKey):
            raise ValueError("the authority's key is not an elliptic curve key")
        self._key: EllipticCurvePrivateKey = key
        self._certificate = x509.load_pem_x509_certificate(pair.certificate.encode())

    @classmethod
    def create(cls, name: str = "Barnabas development authority", days: int = 3650) -> "Authority":
        _check_tools()
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        builder = (
            _builder(subject, subject, key, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(_signed(builder, key, key))

    def issue(self, name: str, hosts: Sequence[str] = (), days: int = 365) -> KeyPair:
        """A certificate for CN=`name`; a broker's names the hosts and addresses at which clients find it."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        # Brokers log in to each other: theirs serve on both sides.
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
        builder = (
            _builder(_subject(name), self._certificate.subject, key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        return _signed(builder, key, self._key)


def _check_tools() -> None:
    try:
        import cryptography.x509  # noqa: F401
    except ImportError:
        raise MissingToolsError(INSTALL_HINT) from None


def _subject(name: str) -> "x509.Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: "x509.Name", issuer: "x509.Name", key: "EllipticCurvePrivateKey", days: int
) -> "x509.CertificateBuilder":
    from cryptography import x509

    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _signed(
    builder: "x509.CertificateBuilder", key: "EllipticCurvePrivateKey", signer: "EllipticCurvePrivateKey"
) -> KeyPair:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(signer, hashes.SHA256())
    return KeyPair(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        certificate.public_bytes(Encoding.PEM).decode(),
    )


def _host(name: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
