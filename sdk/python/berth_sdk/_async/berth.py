"""
One server, one caller, one workspace. Most programs need none: `Sandbox.create()` and the like use the one that
variables, the workload's identity or the command line's file lead to.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Callable, Dict, Optional, Tuple

import httpx

from .._address import segment, url_below
from .._runtime import AsyncClients
from ..errors import BerthError
from .call import AsyncCaller, json_of
from .connection import AsyncConnection, ConnectionOptions, resolve_connection
from .generated import AsyncApi
from .transport import AsyncTransport, WireRequest

_RETRIES = 2
#: Seconds. Long, because a create may wait for a sandbox.
_TIMEOUT = 120.0


class AsyncBerth:
    """
    `url`, `api_key` (a key, or a function that knows the newest), `client_credentials` (id and secret of a service
    account) and `workspace` are found by themselves when they are not given. `retries` is how often a request is sent
    again when that does no harm, `timeout` the seconds until one attempt is given up.
    """

    def __init__(
        self,
        *,
        url: Optional[str] = None,
        api_key: str | Callable[[], str] | None = None,
        client_credentials: Optional[Tuple[str, str]] = None,
        workspace: Optional[str] = None,
        retries: int = _RETRIES,
        timeout: float = _TIMEOUT,
        http_options: Optional[Dict[str, Any]] = None,
    ) -> None:
        self._options = ConnectionOptions(url, api_key, client_credentials, workspace)
        self._retries = retries
        self._timeout = timeout
        # No redirects: credentials are sent only to the configured address.
        self._clients = AsyncClients({**(http_options or {}), "follow_redirects": False})
        self._connection: Optional[AsyncConnection] = None
        self._only_workspace: Optional[str] = None
        #: Every operation of the management API.
        self.api = AsyncApi(AsyncCaller(self._reach))

    @property
    def url(self) -> str:
        """The server in use."""
        return self._connect().url

    async def token(self) -> str:
        """A valid key or token, for other clients: renewed when it is near its end."""
        return await self._connect().credential.bearer()

    async def workspace(self) -> str:
        """The name of the workspace: the chosen one, or the only one that the credentials reach."""
        chosen = self._connect().workspace or self._only_workspace
        if chosen:
            return chosen
        found = [str(each.get("name")) for each in await self.api.workspace_list()]
        if len(found) != 1:
            reach = "several workspaces" if found else "no workspace"
            raise BerthError("no_workspace", f"These credentials reach {reach}.")
        self._only_workspace = found[0]
        return found[0]

    async def address(self, kind: str, name: str) -> str:
        """The address of a workload, which needs the caller's credentials."""
        return f"{self.url}/{segment('workspace', await self.workspace())}/{kind}/{segment('name', name)}"

    async def ask_workload(self, address: str, method: str, path: str, **options: Any) -> Any:
        """Sends a request to a workload and reads its JSON. Raises BerthError for anything but success."""
        return json_of(await self.send_to_workload(address, method, path, **options))

    async def send_to_workload(self, address: str, method: str, path: str, **options: Any) -> httpx.Response:
        return await self._reach()[2].send(_wire(address, method, path, **options))

    @asynccontextmanager
    async def stream_workload(
        self, address: str, method: str, path: str, **options: Any
    ) -> AsyncIterator[httpx.Response]:
        async with self._reach()[2].stream(_wire(address, method, path, **options)) as response:
            yield response

    async def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """
        Sends a request below the server's address with the caller's credentials, whatever the status. A token that the
        server refuses is renewed, once.
        """
        if not url.startswith(f"{self.url}/"):
            raise BerthError("invalid_url", f"{url} is not below {self.url}.")
        url_below(self.url, url[len(self.url) :])
        given = options.pop("headers", {})
        credential = self._connect().credential
        bearer = await credential.bearer()
        client = self._clients.get()
        signed = {**given, "x-service-authorization": f"Bearer {bearer}"}
        response = await client.request(method, url, headers=signed, **options)
        following = await credential.bearer(bearer) if response.status_code == 401 else bearer
        if following == bearer:
            return response
        signed = {**given, "x-service-authorization": f"Bearer {following}"}
        return await client.request(method, url, headers=signed, **options)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._clients.aclose()

    async def __aenter__(self) -> AsyncBerth:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _reach(self) -> Tuple[str, Optional[str], AsyncTransport]:
        connection = self._connect()
        transport = AsyncTransport(self._clients, connection.credential, self._retries, self._timeout)
        return connection.url, connection.workspace, transport

    def _connect(self) -> AsyncConnection:
        if self._connection is None:
            self._connection = resolve_connection(self._options, self._clients)
        return self._connection


def _wire(
    address: str,
    method: str,
    path: str,
    *,
    body: Any = None,
    content: Any = None,
    headers: Optional[Dict[str, str]] = None,
    repeatable: Optional[bool] = None,
    timeout: Optional[float] = None,
) -> WireRequest:
    """`body` is JSON, `content` is sent as it is."""
    as_json = {} if body is None else {"content-type": "application/json"}
    return WireRequest(
        method,
        address,
        path,
        {**as_json, **(headers or {})},
        content if body is None else json.dumps(body),
        repeatable=method == "GET" if repeatable is None else repeatable,
        timeout=timeout,
    )


_usual: Optional[AsyncBerth] = None


def async_default_berth() -> AsyncBerth:
    """The server that everything uses when no other is named."""
    global _usual
    if _usual is None:
        _usual = AsyncBerth()
    return _usual
