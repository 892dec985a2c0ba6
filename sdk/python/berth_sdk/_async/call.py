"""Calls of the management API, for the generated operations."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Callable, Dict, Generic, List, Optional, Tuple, TypeVar, cast

import httpx

from .._words import new_key, query_text
from ..errors import BerthError
from .transport import AsyncTransport, WireRequest

T = TypeVar("T")

#: The behaviour of the server that this SDK was made for.
_VERSION = "2026-04-28"
#: The largest page size of any list; lists with a lower limit clamp it.
_PAGE_LIMIT = 200

Reach = Callable[[], Tuple[str, Optional[str], AsyncTransport]]


class AsyncCaller:
    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Dict[str, Any]] = None,
        body: Any = None,
        stream: Optional[str] = None,
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
    ) -> Any:
        url, workspace, transport = self._reach()
        headers = {"accept": "application/json", "service-version": _VERSION}
        if workspace:
            headers["x-service-workspace"] = workspace
        if body is not None:
            headers["content-type"] = stream or "application/json"
        if method == "POST":
            headers["idempotency-key"] = idempotency_key or new_key()
        request = WireRequest(
            method,
            f"{url}/v0",
            f"{path}{query_text(query or {})}",
            headers,
            body if body is None or stream else json.dumps(body),
            # A POST has its idempotency key; the others do the same when they are done twice.
            repeatable=True,
            timeout=timeout,
        )
        return json_of(await transport.send(request))


class AsyncItems(Generic[T]):
    """A list: `for` yields every item, page after page; `to_list()` is all of them."""

    def __init__(self, caller: AsyncCaller, path: str, query: Dict[str, Any], timeout: Optional[float]) -> None:
        self._caller = caller
        self._path = path
        self._query = query
        self._timeout = timeout

    async def __aiter__(self) -> AsyncIterator[T]:
        seen = set()
        query = {"limit": _PAGE_LIMIT, **{key: value for key, value in self._query.items() if value is not None}}
        while True:
            page = await self._caller.call("GET", self._path, query=query, timeout=self._timeout)
            data, meta = (page.get("data"), page.get("meta")) if isinstance(page, dict) else (page, None)
            for item in data or []:
                yield cast(T, item)
            cursor = (meta or {}).get("nextCursor")
            if not cursor:
                return
            if cursor in seen:
                raise BerthError("repeated_cursor", "The server gave the same page twice.")
            seen.add(cursor)
            query["cursor"] = cursor

    async def to_list(self) -> List[T]:
        return [item async for item in self]


def json_of(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise BerthError("not_json", "The answer is not JSON.", status=response.status_code) from error
