"""Who is calling."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Awaitable, Callable, Optional, Protocol

from .._runtime import AsyncLock

#: A token is renewed this many seconds before it ends, or at half of its life when that is later.
RENEW_BEFORE = 300.0


@dataclass
class Token:
    text: str
    expires_at: float
    issued_at: float
    refresh_token: Optional[str] = None

    def is_fresh(self) -> bool:
        return time.time() < self.expires_at - min(RENEW_BEFORE, (self.expires_at - self.issued_at) / 2)


class AsyncCredential(Protocol):
    async def bearer(self, refused: Optional[str] = None) -> str:
        """A valid key or token. `refused` is a token that the server did not accept: another one is needed."""


class AsyncKeyCredential:
    """A key that never changes, or a function that knows the newest."""

    def __init__(self, key: str | Callable[[], str]) -> None:
        self._key = key

    async def bearer(self, refused: Optional[str] = None) -> str:
        return self._key if isinstance(self._key, str) else self._key()


class AsyncRenewedCredential:
    """A token that is renewed before it ends. Calls of one moment share one renewal."""

    def __init__(self, renew: Callable[[], Awaitable[Token]]) -> None:
        self._renew = renew
        self._token: Optional[Token] = None
        self._lock = AsyncLock()

    async def bearer(self, refused: Optional[str] = None) -> str:
        async with self._lock:
            if self._token is None or self._token.text == refused or not self._token.is_fresh():
                self._token = await self._renew()
            return self._token.text
