"""What differs between the two worlds. The synchronous half of the SDK is generated from the asynchronous one."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Annotated, Any, Awaitable, Dict, Generator, Generic, Protocol, TypeVar

import httpx

T = TypeVar("T")
R = TypeVar("R", covariant=True)

AsyncLock = asyncio.Lock
Lock = threading.Lock
async_sleep = asyncio.sleep
sleep = time.sleep


class AsyncClients:
    """One HTTP client for each event loop: connections cannot leave theirs."""

    def __init__(self, options: Dict[str, Any]) -> None:
        self._options = options
        self._clients: Dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    def get(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        self._clients = {known: client for known, client in self._clients.items() if not known.is_closed()}
        if loop not in self._clients:
            self._clients[loop] = httpx.AsyncClient(**self._options)
        return self._clients[loop]

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()


class Clients:
    def __init__(self, options: Dict[str, Any]) -> None:
        self._client = httpx.Client(**options)

    def get(self) -> httpx.Client:
        return self._client

    def close(self) -> None:
        self._client.close()


class _Waits(Protocol[R]):
    async def wait(self, *, on_progress: Any = ..., timeout: Any = ...) -> R: ...


W = TypeVar("W", bound=_Waits[Any])


class AsyncStarted(Generic[W]):
    """Work that is being started: `await` gives it, `.wait()` its end."""

    def __init__(self, starting: Awaitable[W]) -> None:
        self._starting = asyncio.ensure_future(starting)

    def __await__(self) -> Generator[Any, None, W]:
        return self._starting.__await__()

    async def wait(self, *, on_progress: Any = None, timeout: Any = None) -> Any:
        return await (await self).wait(on_progress=on_progress, timeout=timeout)


def async_started(starting: Awaitable[W]) -> AsyncStarted[W]:
    return AsyncStarted(starting)


#: Without an event loop work has been started when the call returns.
Started = Annotated[T, "started"]


def started(work: T) -> T:
    return work

