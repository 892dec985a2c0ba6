"""Files of a sandbox. A path with a leading slash is absolute, another is relative to the working directory."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Dict, List, Optional, Sequence

from .._address import path_segment
from .._words import query_text
from ..errors import BerthError
from ..values import FileChange, FileEntry, FoundText
from .berth import AsyncBerth
from .transport import lines_of

_BYTES = "application/octet-stream"


class AsyncSandboxFiles:
    def __init__(self, berth: AsyncBerth, address: str) -> None:
        self._berth = berth
        self._address = address

    async def write(
        self, path: str, data: str | bytes, *, permissions: Optional[str] = None, timeout: Optional[float] = None
    ) -> None:
        """Writes a file of any size. Folders on the way are made. `permissions` is octal, such as `0755`."""
        await self._berth.ask_workload(
            self._address,
            "PUT",
            f"/filesystem/{path_segment(path)}{query_text({'permissions': permissions})}",
            content=data.encode() if isinstance(data, str) else data,
            headers={"content-type": _BYTES},
            repeatable=True,
            timeout=timeout,
        )

    async def write_many(self, folder: str, files: Dict[str, str], *, timeout: Optional[float] = None) -> None:
        """Writes several small files below a folder."""
        path = f"/filesystem/tree/{path_segment(folder if folder.startswith('/') else f'/{folder}')}"
        await self._ask("PUT", path, body={"files": files}, repeatable=True, timeout=timeout)

    async def read(self, path: str, *, timeout: Optional[float] = None) -> str:
        """The text of a file."""
        return (await self.read_bytes(path, timeout=timeout)).decode("utf-8", "replace")

    async def read_bytes(self, path: str, *, timeout: Optional[float] = None) -> bytes:
        response = await self._berth.send_to_workload(
            self._address, "GET", f"/filesystem/{path_segment(path)}", headers={"accept": _BYTES}, timeout=timeout
        )
        return response.content

    async def read_stream(self, path: str, *, timeout: Optional[float] = None) -> AsyncIterator[bytes]:
        """The bytes of a file as they arrive, for files that are larger than memory."""
        async with self._berth.stream_workload(
            self._address, "GET", f"/filesystem/{path_segment(path)}", headers={"accept": _BYTES}, timeout=timeout
        ) as response:
            async for chunk in response.aiter_bytes():
                yield chunk

    async def list(self, path: str = ".", *, timeout: Optional[float] = None) -> List[FileEntry]:
        """The entries of a folder."""
        answer = await self._ask("GET", f"/filesystem/{path_segment(path)}", timeout=timeout)
        if "files" not in answer and "subdirectories" not in answer:
            raise BerthError("refused", f"{path} is not a folder.", status=422)
        folders = [FileEntry.of("directory", each) for each in answer.get("subdirectories") or []]
        return [*folders, *(FileEntry.of("file", each) for each in answer.get("files") or [])]

    async def exists(self, path: str, *, timeout: Optional[float] = None) -> bool:
        try:
            await self._ask("GET", f"/filesystem/{path_segment(path)}", timeout=timeout)
        except BerthError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def make_folder(self, path: str, *, timeout: Optional[float] = None) -> None:
        body = {"isDirectory": True}
        await self._ask("PUT", f"/filesystem/{path_segment(path)}", body=body, repeatable=True, timeout=timeout)

    async def move(
        self, path: str, destination: str, *, overwrite: bool = False, timeout: Optional[float] = None
    ) -> None:
        """Gives a file or folder another place. `overwrite` replaces a file that is there."""
        body = {"destination": destination, "overwrite": overwrite}
        await self._ask("POST", f"/filesystem-move/{path_segment(path)}", body=body, timeout=timeout)

    async def remove(self, path: str, *, timeout: Optional[float] = None) -> None:
        """Deletes a file, or a folder with everything in it. A path that is not there is no error."""
        target = f"/filesystem/{path_segment(path)}?recursive=true"
        try:
            await self._ask("DELETE", target, repeatable=True, timeout=timeout)
        except BerthError as error:
            if error.status != 404:
                raise

    async def find(self, folder: str, pattern: str, *, timeout: Optional[float] = None) -> List[str]:
        """Paths below a folder whose names match, such as `*.py`. At most 1000."""
        query = query_text({"patterns": pattern, "maxResults": 1000})
        answer = await self._ask("GET", f"/filesystem-find/{path_segment(folder)}{query}", timeout=timeout)
        return [each["path"] for each in answer["matches"]]

    async def grep(
        self, folder: str, text: str, *, files: Optional[str] = None, timeout: Optional[float] = None
    ) -> List[FoundText]:
        """Lines below a folder that contain a text."""
        query = query_text({"query": text, "caseSensitive": True, "filePattern": files})
        answer = await self._ask("GET", f"/filesystem-content-search/{path_segment(folder)}{query}", timeout=timeout)
        return [FoundText(each["path"], each["line"], each["column"], each["text"]) for each in answer["matches"]]

    async def watch(
        self, folder: str, *, ignore: Sequence[str] = (), timeout: Optional[float] = None
    ) -> AsyncIterator[FileChange]:
        """Changes of a folder and everything below, until the loop ends."""
        query = query_text({"ignore": ",".join(ignore) or None})
        path = f"/watch/filesystem/{path_segment(folder)}/**{query}"
        async with self._berth.stream_workload(self._address, "GET", path, timeout=timeout) as response:
            async for line in lines_of(response):
                if line not in ("", "[keepalive]"):
                    change = json.loads(line)
                    yield FileChange(change["op"], f"{change['path'].rstrip('/')}/{change['name']}")

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        return await self._berth.ask_workload(self._address, method, path, **options)
