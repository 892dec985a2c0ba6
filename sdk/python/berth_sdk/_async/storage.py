"""Volumes, which outlive sandboxes, and drives, which many sandboxes share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Optional

from .._words import without_none
from .berth import AsyncBerth, async_default_berth

if TYPE_CHECKING:
    from ..generated.types import DriveRecord, VolumeRecord


class AsyncVolume:
    def __init__(self, berth: AsyncBerth, record: VolumeRecord) -> None:
        self._berth = berth
        self.record = record
        self.name = record["metadata"]["name"]

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        size_mb: Optional[int] = None,
        template: Optional[str] = None,
        berth: Optional[AsyncBerth] = None,
        timeout: Optional[float] = None,
    ) -> AsyncVolume:
        """`template` is the volume template whose files it starts with, `name` or `name:version`."""
        body: Any = {"metadata": {"name": name}, "spec": without_none({"size": size_mb, "template": template})}
        berth = berth or async_default_berth()
        return cls(berth, await berth.api.volume_create(body, timeout=timeout))

    @classmethod
    async def get(cls, name: str, *, berth: Optional[AsyncBerth] = None, timeout: Optional[float] = None) -> AsyncVolume:
        berth = berth or async_default_berth()
        return cls(berth, await berth.api.volume_get(name, timeout=timeout))

    @classmethod
    async def list(cls, *, berth: Optional[AsyncBerth] = None) -> AsyncIterator[AsyncVolume]:
        berth = berth or async_default_berth()
        async for record in berth.api.volume_list():
            yield cls(berth, record)

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        await self._berth.api.volume_delete(self.name, timeout=timeout)


class AsyncDrive:
    """Mounted with `box.drives.mount(drive, "/mnt/shared")`."""

    def __init__(self, berth: AsyncBerth, record: DriveRecord) -> None:
        self._berth = berth
        self.record = record
        self.name = record["metadata"]["name"]

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        labels: Optional[Dict[str, str]] = None,
        berth: Optional[AsyncBerth] = None,
        timeout: Optional[float] = None,
    ) -> AsyncDrive:
        body: Any = {"metadata": without_none({"name": name, "labels": labels}), "spec": {}}
        berth = berth or async_default_berth()
        return cls(berth, await berth.api.drive_create(body, timeout=timeout))

    @classmethod
    async def get(cls, name: str, *, berth: Optional[AsyncBerth] = None, timeout: Optional[float] = None) -> AsyncDrive:
        berth = berth or async_default_berth()
        return cls(berth, await berth.api.drive_get(name, timeout=timeout))

    @classmethod
    async def list(cls, *, berth: Optional[AsyncBerth] = None) -> AsyncIterator[AsyncDrive]:
        berth = berth or async_default_berth()
        async for record in berth.api.drive_list():
            yield cls(berth, record)

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        await self._berth.api.drive_delete(self.name, timeout=timeout)
