"""The cryptography of secure aggregation, all of it from the package ``cryptography``; nothing is made by hand here.

=====================  ======================================================================================
key agreement          X25519, then HKDF-SHA-256 bound to the session, the purpose and the two parties
masks                  the ChaCha20 stream of such a key, or of a party's own secret
shares on their way    ChaCha20-Poly1305
who says what          Ed25519, with the keys that the parties agreed on beforehand
commitments            SHA-256 of a uniform secret of 32 bytes
=====================  ======================================================================================

All give 128-bit security. Every key is used for one purpose in one session, so nonces are constant.

>>> one, two = Exchange(), Exchange()
>>> one.agree(two.public, "mask", b"session", (0, 1)) == two.agree(one.public, "mask", b"session", (0, 1))
True
>>> stream(bytes(32), 3, 16)
array([47222, 23872, 53949], dtype=uint64)
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import MissingExtra, SurefootError

__all__ = ["Aborted", "Exchange", "Identity", "commitment", "decrypt", "encrypt", "stream", "verified"]

Words = NDArray[np.uint64]
KEY = 32


class Aborted(SurefootError):
    """A secure sum was given up: too few parties, or somebody did not keep to the protocol. Nothing was revealed.

    >>> raise Aborted("2 parties are left, 3 are needed")
    Traceback (most recent call last):
    ...
    surefoot.federated.secure.cipher.Aborted: 2 parties are left, 3 are needed
    """


class Identity:
    """A party's lasting key, with which it signs; its public half stands on the roster of all parties.

    Parameters
    ----------
    secret : bytes, optional
        32 bytes; None draws them. Keep them where only the party reads.

    >>> identity = Identity(bytes(32))
    >>> verified(identity.public, identity.sign(b"text"), b"text"), verified(identity.public, bytes(64), b"text")
    (True, False)
    """

    def __init__(self, secret: bytes | None = None) -> None:
        from_bytes = _library().ed25519.Ed25519PrivateKey.from_private_bytes
        self._key = from_bytes(secrets.token_bytes(KEY) if secret is None else secret)
        self.public: str = self._key.public_key().public_bytes_raw().hex()

    @property
    def secret(self) -> bytes:
        """The 32 bytes that the key is made of, to be stored."""
        return bytes(self._key.private_bytes_raw())

    def sign(self, text: bytes) -> str:
        """Return a signature in hexadecimal digits."""
        return str(self._key.sign(text).hex())

    def __repr__(self) -> str:
        return f"Identity({self.public[:12]}...)"


def verified(public: str, signature: str | bytes, text: bytes) -> bool:
    """Return whether the holder of a public key signed a text.

    >>> verified("00" * 32, "not hexadecimal", b"")
    False
    """
    try:
        mark = signature if isinstance(signature, bytes) else bytes.fromhex(signature)
        _library().ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(mark, text)
    except (ValueError, _library().InvalidSignature):
        return False
    return True


class Exchange:
    """A key pair for one session.

    Parameters
    ----------
    secret : bytes, optional
        32 bytes; None draws them.

    >>> len(Exchange().public)
    64
    """

    def __init__(self, secret: bytes | None = None) -> None:
        self.secret = secrets.token_bytes(KEY) if secret is None else secret
        self._key = _library().x25519.X25519PrivateKey.from_private_bytes(self.secret)
        self.public: str = self._key.public_key().public_bytes_raw().hex()

    def agree(self, public: str, purpose: str, session: bytes, pair: tuple[int, int]) -> bytes:
        """Return the key that the two of a pair, and nobody else, can compute."""
        library = _library()
        try:
            peer = library.x25519.X25519PublicKey.from_public_bytes(bytes.fromhex(public))
            shared = self._key.exchange(peer)
        except ValueError:  # not 32 bytes, or a point of small order
            raise Aborted(f"the key of party {pair[0]} or {pair[1]} is none") from None
        about = f"surefoot {purpose} {min(pair)} {max(pair)}".encode()
        return bytes(library.HKDF(library.hashes.SHA256(), KEY, salt=session, info=about).derive(shared))


def stream(key: bytes, length: int, bits: int) -> Words:
    """Return so many uniform numbers below 2^bits, a function of the key.

    >>> bool((stream(bytes(32), 8, 16) < 2**16).all())
    True
    """
    library = _library()
    encryptor = library.Cipher(library.algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    words: Words = np.frombuffer(encryptor.update(bytes(8 * length)), dtype="<u8").astype(np.uint64)
    return words & np.uint64(2**bits - 1)


def encrypt(key: bytes, text: bytes, about: bytes) -> str:
    """Return a text sealed for one reader, in hexadecimal digits; ``about`` is checked with it.

    >>> decrypt(bytes(32), encrypt(bytes(32), b"shares", b"from 1 to 2"), b"from 1 to 2")
    b'shares'
    """
    return str(_library().ChaCha20Poly1305(key).encrypt(bytes(12), text, about).hex())


def decrypt(key: bytes, sealed: str, about: bytes) -> bytes:
    """Return what was sealed, or abort if anything was changed.

    >>> decrypt(bytes(32), encrypt(bytes(32), b"shares", b"from 1 to 2"), b"from 2 to 1")
    Traceback (most recent call last):
    ...
    surefoot.federated.secure.cipher.Aborted: sealed shares were changed on their way
    """
    try:
        return bytes(_library().ChaCha20Poly1305(key).decrypt(bytes(12), bytes.fromhex(sealed), about))
    except (ValueError, _library().InvalidTag):
        raise Aborted("sealed shares were changed on their way") from None


def commitment(secret: bytes, session: bytes, party: int) -> str:
    """Return what shows later that a secret is the one meant, and does not show it now.

    >>> commitment(bytes(32), b"session", 0) == commitment(bytes(32), b"session", 1)
    False
    """
    return hashlib.sha256(session + party.to_bytes(8, "big") + secret).hexdigest()


class _Library:
    """What is used of ``cryptography``, imported when it is needed."""

    def __init__(self) -> None:
        from cryptography.exceptions import InvalidSignature, InvalidTag
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        self.ed25519, self.x25519, self.hashes, self.HKDF = ed25519, x25519, hashes, HKDF
        self.Cipher, self.algorithms, self.ChaCha20Poly1305 = Cipher, algorithms, ChaCha20Poly1305
        self.InvalidSignature, self.InvalidTag = InvalidSignature, InvalidTag


_loaded: list[Any] = []


def _library() -> Any:
    if not _loaded:
        try:
            _loaded.append(_Library())
        except ImportError:
            raise MissingExtra(
                "secure aggregation needs the package cryptography: pip install 'surefoot[private]'"
            ) from None
    return _loaded[0]
