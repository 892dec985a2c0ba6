"""
Chooses server, credentials and workspace: the options, then variables, then the identity of the workload that this
code runs in, then the command line's file. A stored key is sent only to the address that it was stored for.
"""

from __future__ import annotations

import base64
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Tuple

import httpx

from .._cli_file import StoredProfile, locked, read_profiles, replace_tokens, stored_profile
from .._runtime import AsyncClients, async_sleep
from ..errors import BerthError, error_of
from .credential import RENEW_BEFORE, AsyncCredential, AsyncKeyCredential, AsyncRenewedCredential, Token

_CLIENT_ID = "berth"
_TIMEOUT = 30.0
_LOCK_LOOK = 0.05


@dataclass
class ConnectionOptions:
    url: Optional[str] = None
    api_key: str | Callable[[], str] | None = None
    client_credentials: Optional[Tuple[str, str]] = None
    workspace: Optional[str] = None


@dataclass
class AsyncConnection:
    url: str
    credential: AsyncCredential
    workspace: Optional[str]


def _variable(name: str) -> Optional[str]:
    """The first name is Berth's own; the second is set inside workloads and by tools for similar platforms."""
    other = {"URL": "BL_API_URL"}.get(name, f"BL_{name}")
    return os.environ.get(f"BERTH_{name}") or os.environ.get(other) or None


def resolve_connection(options: ConnectionOptions, clients: AsyncClients) -> AsyncConnection:
    given = options.url or _variable("URL")
    own = None if given is None else _normalized(given)
    explicit = None if own is None else _explicit(options, own, clients)
    if own is not None and explicit is not None:
        return AsyncConnection(own, explicit, options.workspace or _variable("WORKSPACE"))
    stored = stored_profile()
    url = own or (stored.url if stored else None)
    if url is None:
        raise BerthError("no_server", "No Berth server is known.")
    ours = stored if stored is not None and stored.url == url else None
    credential = _explicit(options, url, clients) or (_stored(ours, clients) if ours else None)
    if credential is None:
        raise BerthError("no_credentials", f"There are no credentials for {url}.")
    workspace = options.workspace or _variable("WORKSPACE") or (ours.workspace if ours else None)
    return AsyncConnection(url, credential, workspace)


def _explicit(options: ConnectionOptions, url: str, clients: AsyncClients) -> Optional[AsyncCredential]:
    if options.api_key is not None:
        return AsyncKeyCredential(options.api_key)
    if options.client_credentials is not None:
        basic = base64.b64encode(":".join(options.client_credentials).encode()).decode()
        return _client_credential(url, basic, clients)
    key = _variable("API_KEY")
    if key is not None:
        return AsyncKeyCredential(key)
    stored = _variable("CLIENT_CREDENTIALS")
    return None if stored is None else _client_credential(url, stored, clients)


def _client_credential(url: str, basic: str, clients: AsyncClients) -> AsyncCredential:
    async def renew() -> Token:
        grant = {"grant_type": "client_credentials"}
        return await _request_token(url, grant, {"authorization": f"Basic {basic}"}, clients)

    return AsyncRenewedCredential(renew)


def _stored(profile: StoredProfile, clients: AsyncClients) -> Optional[AsyncCredential]:
    if profile.has_tokens:
        return AsyncRenewedCredential(lambda: _renew_profile(profile, clients))
    return None if profile.api_key is None else AsyncKeyCredential(profile.api_key)


async def _renew_profile(profile: StoredProfile, clients: AsyncClients) -> Token:
    """A refresh token works once: renewing takes the lock of the command line and writes the new one back."""
    while True:
        with locked() as is_ours:
            if is_ours:
                tokens = read_profiles().get("profiles", {}).get(profile.name, {}).get("tokens")
                if not tokens:
                    raise _signed_out(profile.url)
                expires_at = tokens["expiresAt"] / 1000
                if time.time() < expires_at - RENEW_BEFORE:
                    return Token(tokens["accessToken"], expires_at, time.time())
                refresh_token = tokens["refreshToken"]
                grant = {"client_id": _CLIENT_ID, "grant_type": "refresh_token", "refresh_token": refresh_token}
                try:
                    token = await _request_token(profile.url, grant, {}, clients)
                except BerthError as error:
                    raise (_signed_out(profile.url) if error.code == "invalid_grant" else error) from error
                replace_tokens(profile.name, token.text, token.refresh_token or refresh_token, token.expires_at)
                return token
        await async_sleep(_LOCK_LOOK)


def _signed_out(url: str) -> BerthError:
    return BerthError("signed_out", f"The sign-in to {url} has ended.")


async def _request_token(url: str, grant: Dict[str, str], headers: Dict[str, str], clients: AsyncClients) -> Token:
    issued_at = time.time()
    try:
        response = await clients.get().post(f"{url}/oauth/token", json=grant, headers=headers, timeout=_TIMEOUT)
    except httpx.TransportError as error:
        raise BerthError("unreachable", f"{url} does not give a token.", retryable=True) from error
    if not response.is_success:
        raise error_of(response.status_code, response.headers, response.text)
    answer: Any = response.json()
    expires_at = issued_at + float(answer["expires_in"])
    return Token(answer["access_token"], expires_at, issued_at, answer.get("refresh_token"))


def _normalized(url: str) -> str:
    """`http://host/v0/` and `http://host` are the same server."""
    if not url.startswith(("http://", "https://")):
        raise BerthError("invalid_url", f"'{url}' is not an address.")
    return url.rstrip("/").removesuffix("/v0")
