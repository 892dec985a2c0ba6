"""The bill: cost and usage of the account, and of models by their callers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence

from ..errors import BerthError
from .berth import AsyncBerth, async_default_berth

if TYPE_CHECKING:
    from ..generated.types import AccountMetricsResult, ModelUsageResult


async def async_usage(
    *,
    since: Optional[datetime] = None,
    until: Optional[datetime] = None,
    by: Sequence[str] = (),
    berth: Optional[AsyncBerth] = None,
    timeout: Optional[float] = None,
) -> AccountMetricsResult:
    """
    Cost and usage of the caller's account, the costliest first. `since` is a day before `until` unless given; `by` is
    up to three of `workspace`, `resource_type`, `resource_name`, `resource_uuid`, `billing_dimension`.
    """
    berth = berth or async_default_berth()
    accounts = await berth.api.account_list(timeout=timeout)
    if not accounts:
        raise BerthError("not_found", "The caller has no account.", status=404)
    return await berth.api.account_metrics(
        accounts[0]["id"], group_by=",".join(by) or None, timeout=timeout, **_window(since, until)
    )


async def async_model_usage(
    *,
    since: Optional[datetime] = None,
    until: Optional[datetime] = None,
    by: Sequence[str] = ("model",),
    berth: Optional[AsyncBerth] = None,
    timeout: Optional[float] = None,
) -> ModelUsageResult:
    """Tokens and cost of the workspace's models, by `model`, `key` or `workspace`."""
    berth = berth or async_default_berth()
    return await berth.api.model_usage(group_by=",".join(by), timeout=timeout, **_window(since, until))


def _window(since: Optional[datetime], until: Optional[datetime]) -> Dict[str, Any]:
    end = until or datetime.now(timezone.utc)
    start = since or end - timedelta(days=1)
    return {"start_time": _text(start), "end_time": _text(end)}


def _text(time: datetime) -> str:
    return time.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
