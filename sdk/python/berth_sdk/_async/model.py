"""A model of the platform. Every provider is asked in the words of OpenAI."""

from __future__ import annotations

import json
import sys
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Sequence, TypeVar

from .._address import is_below
from .._words import without_none
from ..errors import BerthError
from ..values import ChatAnswer
from .berth import AsyncBerth, async_default_berth
from .transport import events_of

Client = TypeVar("Client")
#: Official clients want a key; the platform's own credentials take its place in every request.
_PLACEHOLDER = "berth"


class AsyncModel:
    def __init__(self, name: str, *, berth: Optional[AsyncBerth] = None) -> None:
        self.name = name
        self._berth = berth or async_default_berth()

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        provider: str,
        model: Optional[str] = None,
        connection: Optional[str] = None,
        berth: Optional[AsyncBerth] = None,
        timeout: Optional[float] = None,
    ) -> AsyncModel:
        """`provider` is `openai`, `anthropic`, `mock`, …; `connection` the integration connection with its key."""
        connections = None if connection is None else [connection]
        spec = without_none({"integrationConnections": connections})
        spec["runtime"] = without_none({"type": provider, "model": model})
        body: Any = {"metadata": {"name": name}, "spec": spec}
        berth = berth or async_default_berth()
        await berth.api.model_create(body, timeout=timeout)
        return cls(name, berth=berth)

    async def chat(
        self, input: str | Sequence[Dict[str, Any]] | Dict[str, Any], *, timeout: Optional[float] = None
    ) -> ChatAnswer:
        """One answer to a question or a conversation."""
        answer = await self._post("/v1/chat/completions", self._chat_body(input), timeout)
        choices = answer.get("choices") or [{}]
        return ChatAnswer(choices[0].get("message", {}).get("content") or "", answer)

    async def chat_stream(
        self, input: str | Sequence[Dict[str, Any]] | Dict[str, Any], *, timeout: Optional[float] = None
    ) -> AsyncIterator[str]:
        """The same, with the text as it is written."""
        body = {**self._chat_body(input), "stream": True}
        async with self._berth.stream_workload(
            await self._address(), "POST", "/v1/chat/completions", body=body, timeout=timeout
        ) as response:
            async for data in events_of(response):
                if data == "[DONE]":
                    return
                choices = json.loads(data).get("choices") or [{}]
                text = choices[0].get("delta", {}).get("content")
                if text:
                    yield text

    async def responses(self, input: str | Dict[str, Any], *, timeout: Optional[float] = None) -> ChatAnswer:
        """OpenAI's Responses API: a text, or the whole body of a request."""
        given = {"input": input} if isinstance(input, str) else input
        answer = await self._post("/v1/responses", {"model": self.name, **given}, timeout)
        parts = [part for item in answer["output"] for part in item.get("content") or []]
        return ChatAnswer("".join(part.get("text", "") for part in parts), answer)

    async def embeddings(self, input: str | Sequence[str], *, timeout: Optional[float] = None) -> List[List[float]]:
        """One vector for each text."""
        texts = input if isinstance(input, str) else [*input]
        answer = await self._post("/v1/embeddings", {"model": self.name, "input": texts}, timeout)
        return [each["embedding"] for each in answer["data"]]

    async def openai(self, client: Callable[..., Client], **options: Any) -> Client:
        """The official client, with a token that renews itself. Its `model` may be any name: the record decides."""
        return self._official(client, f"{await self._address()}/v1", options)

    async def anthropic(self, client: Callable[..., Client], **options: Any) -> Client:
        """The official client, with a token that renews itself."""
        return self._official(client, await self._address(), options)

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        await self._berth.api.model_delete(self.name, timeout=timeout)

    def _official(self, client: Callable[..., Client], base_url: str, options: Dict[str, Any]) -> Client:
        async def sign(request: Any) -> None:
            if not is_below(self._berth.url, str(request.url)):
                raise BerthError("invalid_url", f"{request.url} is not below {self._berth.url}.")
            for name in ("authorization", "x-api-key"):
                if name in request.headers:
                    del request.headers[name]
            request.headers["x-service-authorization"] = f"Bearer {await self._berth.token()}"

        package = sys.modules[client.__module__.split(".")[0]]
        http_client = package.DefaultAsyncHttpxClient(event_hooks={"request": [sign]})
        return client(**{"base_url": base_url, "api_key": _PLACEHOLDER, "http_client": http_client, **options})

    async def _address(self) -> str:
        return await self._berth.address("models", self.name)

    def _chat_body(self, input: str | Sequence[Dict[str, Any]] | Dict[str, Any]) -> Dict[str, Any]:
        if isinstance(input, str):
            return {"model": self.name, "messages": [{"role": "user", "content": input}]}
        return {"model": self.name, **(input if isinstance(input, dict) else {"messages": [*input]})}

    async def _post(self, path: str, body: Dict[str, Any], timeout: Optional[float]) -> Any:
        return await self._berth.ask_workload(await self._address(), "POST", path, body=body, timeout=timeout)
