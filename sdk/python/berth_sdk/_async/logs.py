"""What workloads have written: kept by the platform, also after the end of a process or a sandbox."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, AsyncIterator, Dict, Optional

from .._runtime import async_sleep
from ..values import LogLine
from .berth import AsyncBerth

_SINCE = 3600.0
_PAGE = 1000
#: Seconds. Lines may be stored a little later than they were written.
_OVERLAP = 30.0
_LOOK = 0.5


async def read_logs(
    berth: AsyncBerth, subject: Dict[str, Any], *, since: Optional[float], follow: bool, search: Optional[str]
) -> AsyncIterator[LogLine]:
    """Oldest first; no line twice. `since` is seconds."""
    told: Dict[str, LogLine] = {}
    back = _SINCE if since is None else since
    while True:
        lines = await _written(berth, {**subject, "search": search}, back)
        for time in sorted(lines):
            if time not in told:
                yield lines[time]
        told, back = lines, _OVERLAP
        if not follow:
            return
        await async_sleep(_LOOK)


async def _written(berth: AsyncBerth, subject: Dict[str, Any], back: float) -> Dict[str, LogLine]:
    """New lines shift the pages, so the same line may appear on two pages."""
    found: Dict[str, LogLine] = {}
    start = (datetime.now(timezone.utc) - timedelta(seconds=back)).isoformat().replace("+00:00", "Z")
    offset, total = 0, 1
    while offset < total:
        answer: Any = await berth.api.log_query(start=start, limit=_PAGE, offset=offset, **subject)
        page: Any = next(iter(answer.values()), {"logs": [], "totalCount": 0})
        for line in page["logs"]:
            found[line["timestamp"]] = LogLine(line["timestamp"], line["message"], line["severity"], line)
        offset += len(page["logs"])
        total = page["totalCount"] if page["logs"] else 0
    return found
