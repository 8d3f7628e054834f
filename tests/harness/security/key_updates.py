"""Updates of keys in TLS 1.3 (RFC 8446, 4.6.3), as a hostile client sends them: Python's `ssl`
sends none.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

CIPHER = "TLS_AES_256_GCM_SHA384"
_KEY_UPDATE = b"\x18\0\0\1\0"  # one that requests no answer
_HANDSHAKE = b"\x16"
_TAG_BYTES = 16


def client_secret(key_log: str) -> bytes:
    """The secret of a client that has sent no records, from the last line of its key log."""
    return bytes.fromhex(key_log.rpartition("CLIENT_TRAFFIC_SECRET_0 ")[2].split()[1])


def key_updates(secret: bytes, count: int) -> bytes:
    """The records of updates. Each has the key that the one before it announced."""
    records = []
    for _ in range(count):
        plain = _KEY_UPDATE + _HANDSHAKE
        header = b"\x17\3\3" + (len(plain) + _TAG_BYTES).to_bytes(2, "big")
        key, nonce = _expand(secret, b"key", 32), _expand(secret, b"iv", 12)
        records.append(header + AESGCM(key).encrypt(nonce, plain, header))
        secret = _expand(secret, b"traffic upd", SHA384.digest_size)
    return b"".join(records)


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label of RFC 8446, 7.1."""
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)
