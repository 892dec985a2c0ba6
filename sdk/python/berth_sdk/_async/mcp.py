"""A small MCP client over streamable HTTP: the tools of a function, or of a sandbox."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import httpx

from ..errors import BerthError
from ..values import Tool, ToolResult
from .berth import AsyncBerth, async_default_berth
from .transport import events_of

_PROTOCOL = "2025-11-25"
_CLIENT = {"name": "berth-sdk", "version": "0.1.0"}


class AsyncMcpServer:
    """The MCP server that the function of this name is, or the one below `address`."""

    def __init__(self, name: str, *, berth: Optional[AsyncBerth] = None, address: Optional[str] = None) -> None:
        self.name = name
        self._berth = berth or async_default_berth()
        self._address = address
        self._open = False
        self._session: Optional[str] = None
        self._ids = 0

    async def list(self, *, timeout: Optional[float] = None) -> List[Tool]:
        """Every tool, page after page."""
        found: List[Tool] = []
        params: Dict[str, Any] = {}
        while True:
            page = await self.request("tools/list", params, timeout=timeout)
            for each in page["tools"]:
                found.append(Tool(each["name"], each.get("description", ""), each.get("inputSchema", {})))
            cursor = page.get("nextCursor")
            if not cursor or cursor == params.get("cursor"):
                return found
            params = {"cursor": cursor}

    async def call(
        self, name: str, arguments: Optional[Dict[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> ToolResult:
        """Calls a tool. An error of the tool itself is a result with `is_error`."""
        params = {"name": name, "arguments": arguments or {}}
        result = await self.request("tools/call", params, timeout=timeout)
        content = result.get("content") or []
        text = "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
        return ToolResult(text, content, bool(result.get("isError")), result.get("structuredContent"))

    async def request(
        self, method: str, params: Optional[Dict[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Any:
        """Any request of the protocol. A session that the server has ended is begun anew, once."""
        await self._begin(timeout)
        try:
            return await self._send(method, params or {}, timeout)
        except BerthError as error:
            if error.status != 404 or self._session is None:
                raise
        self._open, self._session = False, None
        await self._begin(timeout)
        return await self._send(method, params or {}, timeout)

    async def _begin(self, timeout: Optional[float]) -> None:
        if self._open:
            return
        hello = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": _CLIENT}
        await self._send("initialize", hello, timeout)
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, None, timeout)
        self._open = True

    async def _send(self, method: str, params: Dict[str, Any], timeout: Optional[float]) -> Any:
        self._ids += 1
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        reply = await self._post(message, self._ids, timeout)
        error = reply.get("error")
        if error is None:
            return reply.get("result")
        raise BerthError(f"mcp_{error['code']}", error["message"], body=error)

    async def _post(self, message: Dict[str, Any], id: Optional[int], timeout: Optional[float]) -> Dict[str, Any]:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": _PROTOCOL}
        if self._session is not None:
            headers["mcp-session-id"] = self._session
        address = self._address or await self._berth.address("functions", self.name)
        async with self._berth.stream_workload(
            address, "POST", "/mcp", body=message, headers=headers, timeout=timeout
        ) as response:
            self._session = response.headers.get("mcp-session-id", self._session)
            return {} if id is None else await _reply_in(response, id)


async def _reply_in(response: httpx.Response, id: int) -> Dict[str, Any]:
    """The reply to a request, as JSON or among the events of a stream."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        await response.aread()
        answer: Dict[str, Any] = response.json()
        return answer
    async for data in events_of(response):
        message = json.loads(data)
        if isinstance(message, dict) and message.get("id") == id:
            return message
    raise BerthError("broken_stream", "The MCP server ended the stream without a reply.")
