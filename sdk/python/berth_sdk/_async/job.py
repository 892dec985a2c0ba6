"""A job: one program that runs many times, each time with other arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Optional, Sequence, cast

from .._runtime import AsyncStarted, async_sleep, async_started
from .._words import new_key, without_none
from ..values import LogLine
from .berth import AsyncBerth, async_default_berth
from .call import AsyncItems
from .logs import read_logs

if TYPE_CHECKING:
    from ..generated.types import JobExecutionListItem as ExecutionRecord
    from ..generated.types import JobExecutionTaskListItem as TaskRecord

_BASE_IMAGE = "service/base-image:latest"
_LOOK_FIRST = 0.1
_LOOK_MOST = 1.0


class AsyncJob:
    def __init__(self, name: str, *, berth: Optional[AsyncBerth] = None) -> None:
        self.name = name
        self._berth = berth or async_default_berth()

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        command: Optional[Sequence[str]] = None,
        image: str = _BASE_IMAGE,
        memory_mb: Optional[int] = None,
        max_retries: Optional[int] = None,
        timeout_seconds: Optional[int] = None,
        max_concurrent_tasks: Optional[int] = None,
        env: Optional[Dict[str, str]] = None,
        berth: Optional[AsyncBerth] = None,
        timeout: Optional[float] = None,
    ) -> AsyncJob:
        """`timeout_seconds` is for one attempt of a task; `timeout` for this call."""
        envs = None if env is None else [{"name": key, "value": value} for key, value in env.items()]
        program = None if command is None else [*command]
        runtime = {"image": image, "command": program, "memory": memory_mb, "maxRetries": max_retries, "envs": envs}
        runtime.update(timeout=timeout_seconds, maxConcurrentTasks=max_concurrent_tasks)
        body: Any = {"metadata": {"name": name}, "spec": {"runtime": without_none(runtime)}}
        berth = berth or async_default_berth()
        await berth.api.job_create(body, timeout=timeout)
        return cls(name, berth=berth)

    def run(
        self,
        tasks: Optional[Sequence[Dict[str, Any]]] = None,
        *,
        env: Optional[Dict[str, str]] = None,
        memory_mb: Optional[int] = None,
        execution_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> AsyncStarted[AsyncExecution]:
        """Starts one task for each set of arguments; `.wait()` waits for their end."""
        body = {"tasks": [{}] if tasks is None else [*tasks], "executionId": execution_id or new_key()}
        body.update(without_none({"env": env, "memory": memory_mb}))
        return async_started(self._start(body, timeout))

    def execution(self, id: str) -> AsyncExecution:
        return AsyncExecution(self._berth, self.name, id)

    def executions(self, *, timeout: Optional[float] = None) -> AsyncItems[ExecutionRecord]:
        """Newest first."""
        return self._berth.api.job_execution_list(self.name, timeout=timeout)

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        await self._berth.api.job_delete(self.name, timeout=timeout)

    async def _start(self, body: Dict[str, Any], timeout: Optional[float]) -> AsyncExecution:
        made: Any = await self._berth.api.job_execution_create(self.name, cast(Any, body), timeout=timeout)
        return AsyncExecution(self._berth, self.name, made["id"])


class AsyncExecution:
    def __init__(self, berth: AsyncBerth, job: str, id: str) -> None:
        self._berth = berth
        self._job = job
        self.id = id

    async def read(self, *, timeout: Optional[float] = None) -> ExecutionRecord:
        """Status and numbers, without the tasks."""
        return await self._berth.api.job_execution_get(self._job, self.id, inline_tasks=False, timeout=timeout)

    async def wait(
        self,
        *,
        on_progress: Optional[Callable[[ExecutionRecord], Any]] = None,
        timeout: Optional[float] = None,
    ) -> ExecutionRecord:
        """Waits for the end. Failed tasks are a result, not an error: `status` and `stats` tell."""
        told: Any = None
        pause = _LOOK_FIRST
        while True:
            record = await self.read(timeout=timeout)
            numbers = (record.get("status"), record.get("stats"))
            if numbers != told and on_progress is not None:
                on_progress(record)
            told = numbers
            if record["metadata"].get("completedAt") is not None:
                return record
            await async_sleep(pause)
            pause = min(pause * 1.5, _LOOK_MOST)

    def tasks(self, *, timeout: Optional[float] = None) -> AsyncItems[TaskRecord]:
        """Every task, with its times and, when it failed, the reason."""
        return self._berth.api.job_execution_task_list(self._job, self.id, timeout=timeout)

    def logs(
        self,
        *,
        task: Optional[int] = None,
        since: Optional[float] = None,
        follow: bool = False,
        search: Optional[str] = None,
    ) -> AsyncIterator[LogLine]:
        subject = {"resource_type": "jobs", "workload_ids": self._job, "execution_id": self.id}
        if task is not None:
            subject["task_id"] = str(task)
        return read_logs(self._berth, subject, since=since, follow=follow, search=search)

    async def cancel(self, *, timeout: Optional[float] = None) -> None:
        """What has not started never will, what runs may finish."""
        await self._berth.api.job_execution_delete(self._job, self.id, timeout=timeout)
