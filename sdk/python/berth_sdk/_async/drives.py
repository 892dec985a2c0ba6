"""Drives that are mounted in a sandbox while it runs."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from .._address import segment
from .._words import without_none
from .berth import AsyncBerth


class AsyncSandboxDrives:
    def __init__(self, berth: AsyncBerth, address: str) -> None:
        self._berth = berth
        self._address = address

    async def mount(
        self,
        drive: Any,
        mount_path: str,
        *,
        drive_path: Optional[str] = None,
        read_only: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> None:
        """Mounts a drive (or its name), or the folder `drive_path` of it."""
        name = drive if isinstance(drive, str) else drive.name
        body = {"driveName": name, "mountPath": mount_path, "drivePath": drive_path, "readOnly": read_only}
        await self._berth.ask_workload(
            self._address, "POST", "/drives/mount", body=without_none(body), timeout=timeout
        )

    async def unmount(self, mount_path: str, *, timeout: Optional[float] = None) -> None:
        path = f"/drives/mount/{segment('mount_path', mount_path.lstrip('/'))}"
        await self._berth.ask_workload(self._address, "DELETE", path, timeout=timeout)

    async def list(self, *, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        answer = await self._berth.ask_workload(self._address, "GET", "/drives/mount", timeout=timeout)
        return list_of(answer.get("mounts"))


def list_of(value: Any) -> List[Dict[str, Any]]:
    return value if isinstance(value, list) else []
