"""
Sends requests: credentials, time limits, retries. A request is sent again when no answer came or the server is
overloaded, and sending it twice does no harm; after a 401 once more with a new token.
"""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Dict, Optional

import httpx

from .._address import url_below
from .._runtime import AsyncClients, async_sleep
from .._words import Events, Lines
from ..errors import BerthError, error_of
from .credential import AsyncCredential

_BACKOFF_FIRST = 0.2
_BACKOFF_MOST = 5.0
#: A server that asks for a longer pause is told to the caller instead.
_RETRY_AFTER_MOST = 30.0
#: The server has refused the request before it did anything.
_REFUSALS = {"RATE_LIMITED", "rate_limited", "OVERLOADED"}


@dataclass
class WireRequest:
    method: str
    #: The request does not leave this address.
    address: str
    #: Behind the address, with the leading slash.
    path: str
    headers: Dict[str, str] = field(default_factory=dict)
    content: Any = None
    #: Sending the request twice does no harm.
    repeatable: bool = False
    timeout: Optional[float] = None


class AsyncTransport:
    def __init__(self, clients: AsyncClients, credential: AsyncCredential, retries: int, timeout: float) -> None:
        self._clients = clients
        self._credential = credential
        self._retries = retries
        self._timeout = timeout

    async def send(self, request: WireRequest) -> httpx.Response:
        """The answer, read to its end. Raises BerthError for anything but success."""
        async with self.stream(request) as response:
            try:
                await response.aread()
            except httpx.TransportError as error:
                raise _unreachable(request, error) from error
            return response

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncIterator[httpx.Response]:
        """The answer, of which only the head was read."""
        response = await self._open(request)
        try:
            yield response
        finally:
            await response.aclose()

    async def _open(self, request: WireRequest) -> httpx.Response:
        bearer = await self._credential.bearer()
        attempt, renewed = 0, False
        while True:
            try:
                return await self._once(request, bearer)
            except BerthError as error:
                if error.status == 401 and not renewed:
                    renewed = True
                    following = await self._credential.bearer(bearer)
                    if following == bearer:
                        raise
                    bearer = following
                elif attempt < self._retries and _may_repeat(request, error):
                    await async_sleep(_backoff(attempt, error))
                    attempt += 1
                else:
                    raise

    async def _once(self, request: WireRequest, bearer: str) -> httpx.Response:
        client = self._clients.get()
        sent = client.build_request(
            request.method,
            url_below(request.address, request.path),
            headers={"x-service-authorization": f"Bearer {bearer}", **request.headers},
            content=request.content,
            timeout=self._timeout if request.timeout is None else request.timeout,
        )
        try:
            response = await client.send(sent, stream=True)
            if response.is_success:
                return response
            await response.aread()
        except httpx.TimeoutException as error:
            raise BerthError("timeout", f"{_origin(request)} did not answer in time.") from error
        except httpx.TransportError as error:
            raise _unreachable(request, error) from error
        if response.is_redirect:
            target = response.headers.get("location", "another address")
            raise BerthError("redirected", f"The server redirects to {target}.", status=response.status_code)
        raise error_of(response.status_code, response.headers, response.text)


async def lines_of(response: httpx.Response) -> AsyncIterator[str]:
    """The lines of a stream, as they arrive."""
    lines = Lines()
    try:
        async for chunk in response.aiter_bytes():
            for line in lines.add(chunk):
                yield line
    except httpx.TransportError as error:
        raise BerthError("broken_stream", f"The connection ended in the middle of an answer ({error}).") from error
    for line in lines.end():
        yield line


async def events_of(response: httpx.Response) -> AsyncIterator[str]:
    """The `data` of server-sent events."""
    events = Events()
    async for line in lines_of(response):
        for data in events.add(line):
            yield data
    for data in events.end():
        yield data


def _may_repeat(request: WireRequest, error: BerthError) -> bool:
    if (error.retry_after or 0) > _RETRY_AFTER_MOST:
        return False
    if error.code in _REFUSALS:
        return True
    return request.repeatable and (error.code == "unreachable" if error.status == 0 else error.retryable)


def _backoff(attempt: int, error: BerthError) -> float:
    if error.retry_after is not None:
        return error.retry_after
    most = min(_BACKOFF_FIRST * float(2**attempt), _BACKOFF_MOST)
    return most / 2 + random.random() * most / 2


def _origin(request: WireRequest) -> str:
    url = httpx.URL(request.address)
    return f"{url.scheme}://{url.netloc.decode()}"


def _unreachable(request: WireRequest, error: Exception) -> BerthError:
    return BerthError("unreachable", f"{_origin(request)} cannot be reached ({error}).", retryable=True)
