"""An agent, and the conversations that it remembers."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Dict, List, Optional, Sequence

import httpx

from .._address import url_below
from ..values import LogLine
from .berth import AsyncBerth, async_default_berth
from .logs import read_logs

_THREAD_HEADER = "x-service-thread-id"


class AsyncAgent:
    def __init__(self, name: str, *, berth: Optional[AsyncBerth] = None) -> None:
        self.name = name
        self._berth = berth or async_default_berth()

    async def ask(
        self,
        inputs: str | Dict[str, Any],
        *,
        thread: Optional[str] = None,
        path: str = "",
        timeout: Optional[float] = None,
    ) -> str:
        """The text of the answer: `output` of a JSON answer, or else the whole answer."""
        body = {"inputs": inputs} if isinstance(inputs, str) else inputs
        headers = {} if thread is None else {_THREAD_HEADER: thread}
        address = await self._berth.address("agents", self.name)
        response = await self._berth.send_to_workload(
            address, "POST", path, body=body, headers=headers, timeout=timeout
        )
        return _output_of(response.text)

    async def fetch(self, path: str = "", *, method: str = "GET", **options: Any) -> httpx.Response:
        """Any request to the agent. Options are those of httpx."""
        address = await self._berth.address("agents", self.name)
        return await self._berth.request(method, url_below(address, path), **options)

    def thread(self, id: str) -> AsyncThread:
        """A conversation. Whoever knows its id can go on with it: choose one that cannot be guessed."""
        return AsyncThread(self, id, self._berth)

    def logs(
        self, *, since: Optional[float] = None, follow: bool = False, search: Optional[str] = None
    ) -> AsyncIterator[LogLine]:
        subject = {"resource_type": "agents", "workload_ids": self.name}
        return read_logs(self._berth, subject, since=since, follow=follow, search=search)


class AsyncThread:
    def __init__(self, agent: AsyncAgent, id: str, berth: AsyncBerth) -> None:
        self.id = id
        self._agent = agent
        self._berth = berth

    async def ask(self, inputs: str | Dict[str, Any], *, timeout: Optional[float] = None) -> str:
        return await self._agent.ask(inputs, thread=self.id, timeout=timeout)

    async def messages(self, *, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """The newest messages, oldest first."""
        answer: Any = await self._berth.api.agent_thread_get(self._agent.name, self.id, timeout=timeout)
        return [*answer["messages"]]

    async def append(self, messages: Sequence[Dict[str, Any]], *, timeout: Optional[float] = None) -> None:
        body: Any = {"messages": [*messages]}
        await self._berth.api.agent_thread_append(self._agent.name, self.id, body, timeout=timeout)

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        await self._berth.api.agent_thread_delete(self._agent.name, self.id, timeout=timeout)


def _output_of(text: str) -> str:
    try:
        answer = json.loads(text)
    except ValueError:
        return text  # not JSON: the text is the answer
    output = answer.get("output") if isinstance(answer, dict) else None
    return output if isinstance(output, str) else text
