"""A preview: an address of its own for one port of a sandbox."""

from __future__ import annotations

from typing import Any, Optional

from .._words import without_none
from ..errors import BerthError
from .berth import AsyncBerth


class AsyncPreview:
    def __init__(self, berth: AsyncBerth, sandbox: str, name: str, port: int, address: str, token: Optional[str]) -> None:
        self._berth = berth
        self._sandbox = sandbox
        self.name = name
        self.port = port
        #: For the header `X-Service-Preview-Token`; None for a public preview.
        self.token = token
        #: Opens the port; of a private preview, with the token in the query.
        self.url = address if token is None else f"{address}?bl_preview_token={token}"

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        """Closes the address."""
        await self._berth.api.preview_delete(self._sandbox, self.name, timeout=timeout)


async def open_preview(
    berth: AsyncBerth,
    sandbox: str,
    port: int,
    *,
    public: bool,
    name: Optional[str],
    ttl: Optional[str],
    timeout: Optional[float],
) -> AsyncPreview:
    """The preview of this name, made when there is none."""
    own = name or f"port-{port}"
    body: Any = {"metadata": {"name": own}, "spec": without_none({"port": port, "public": public, "ttl": ttl})}
    try:
        record: Any = await berth.api.preview_create(sandbox, body, timeout=timeout)
    except BerthError as error:
        if error.status != 409:
            raise
        record = await berth.api.preview_update(sandbox, own, body, timeout=timeout)
    token: Optional[str] = None
    if not public:
        made: Any = await berth.api.previewtoken_create(sandbox, own, {}, timeout=timeout)
        token = made["spec"]["token"]
    return AsyncPreview(berth, sandbox, own, port, record["spec"]["url"], token)
