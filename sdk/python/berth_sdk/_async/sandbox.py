"""A sandbox: an isolated Linux machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, List, Optional, Sequence

import httpx

from .._address import segment, url_below
from .._words import random_word, without_none
from ..errors import BerthError
from ..values import CodeContext, CodeExecution, CodeResult, Finished, LogLine, ProcessState
from .berth import AsyncBerth, async_default_berth
from .code import create_code_context, run_code
from .drives import AsyncSandboxDrives
from .files import AsyncSandboxFiles
from .logs import read_logs
from .mcp import AsyncMcpServer
from .preview import AsyncPreview, open_preview
from .process import AsyncSandboxProcess, run_command

if TYPE_CHECKING:
    from ..generated.types import SandboxRecord

#: Longest name of a resource.
_NAME_MAX = 49


class AsyncSandbox:
    def __init__(self, berth: AsyncBerth, record: SandboxRecord) -> None:
        """Use `create`, `get` or `get_or_create`."""
        self._berth = berth
        #: As it was when it was read last.
        self.record = record
        self.name = record["metadata"]["name"]
        #: Its address, for requests with the caller's credentials.
        self.address = f"{berth.url}/{segment('workspace', record['metadata']['workspace'])}/sandboxes/{segment('name', self.name)}"
        self.files = AsyncSandboxFiles(berth, self.address)
        self.drives = AsyncSandboxDrives(berth, self.address)
        #: The tools that the sandbox offers to agents.
        self.tools = AsyncMcpServer(self.name, berth=berth, address=self.address)

    @classmethod
    async def create(
        cls,
        *,
        name: Optional[str] = None,
        image: Optional[str] = None,
        memory_mb: Optional[int] = None,
        env: Optional[Dict[str, str]] = None,
        secrets: Optional[Dict[str, str]] = None,
        labels: Optional[Dict[str, str]] = None,
        ttl: Optional[str] = None,
        volumes: Optional[Sequence[Dict[str, Any]]] = None,
        spec: Optional[Dict[str, Any]] = None,
        berth: Optional[AsyncBerth] = None,
        timeout: Optional[float] = None,
        idempotency_key: Optional[str] = None,
    ) -> AsyncSandbox:
        """
        Creates a sandbox and waits until it runs. Values of `secrets` are masked in every answer; `ttl` deletes the
        sandbox after a while, such as `30m`; `spec` has members of the record that have no option here.
        """
        given = dict(spec or {})
        runtime = dict(given.get("runtime") or {})
        envs = [*runtime.get("envs", []), *({"name": key, "value": value} for key, value in (env or {}).items())]
        envs += [{"name": key, "value": value, "secret": True} for key, value in (secrets or {}).items()]
        runtime.update(without_none({"image": image, "memory": memory_mb, "ttl": ttl, "envs": envs or None}))
        given.update(without_none({"runtime": runtime, "volumes": None if volumes is None else list(volumes)}))
        body: Any = {"metadata": without_none({"name": name, "labels": labels}), "spec": given}
        berth = berth or async_default_berth()
        return cls(berth, await berth.api.sandbox_create(body, timeout=timeout, idempotency_key=idempotency_key))

    @classmethod
    async def get(
        cls, name: str, *, berth: Optional[AsyncBerth] = None, timeout: Optional[float] = None
    ) -> AsyncSandbox:
        """The sandbox of this name; raises `not_found` when there is none."""
        berth = berth or async_default_berth()
        return cls(berth, await berth.api.sandbox_get(name, timeout=timeout))

    @classmethod
    async def get_or_create(cls, name: str, *, berth: Optional[AsyncBerth] = None, **options: Any) -> AsyncSandbox:
        """The sandbox of this name, created when there is none."""
        try:
            return await cls.get(name, berth=berth)
        except BerthError as error:
            if error.status != 404:
                raise
        try:
            return await cls.create(name=name, berth=berth, **options)
        except BerthError as error:
            # Another caller has created it in this moment.
            if error.status != 409:
                raise
        return await cls.get(name, berth=berth)

    @classmethod
    async def list(
        cls, *, berth: Optional[AsyncBerth] = None, timeout: Optional[float] = None
    ) -> AsyncIterator[AsyncSandbox]:
        """Every sandbox of the workspace."""
        berth = berth or async_default_berth()
        async for record in berth.api.sandbox_list(timeout=timeout):
            yield cls(berth, record)

    async def refresh(self, *, timeout: Optional[float] = None) -> SandboxRecord:
        """Reads the record again."""
        self.record = await self._berth.api.sandbox_get(self.name, timeout=timeout)
        return self.record

    async def run(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        input: str | bytes | None = None,
        on_stdout: Optional[Callable[[str], Any]] = None,
        on_stderr: Optional[Callable[[str], Any]] = None,
        timeout: Optional[float] = None,
    ) -> Finished:
        """
        Runs a command with `sh -c` to its end. An exit code other than 0 is a result, not an error. After `timeout`
        seconds, rounded up to whole ones, the command is killed.
        """
        return await run_command(
            self._berth,
            self.address,
            command,
            cwd=cwd,
            env=env,
            input=input,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            timeout=timeout,
        )

    async def run_code(
        self,
        code: str,
        *,
        language: Optional[str] = None,
        context: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        on_stdout: Optional[Callable[[str], Any]] = None,
        on_stderr: Optional[Callable[[str], Any]] = None,
        on_result: Optional[Callable[[CodeResult], Any]] = None,
        timeout: Optional[float] = None,
    ) -> CodeExecution:
        """
        Runs code in the interpreter of a sandbox with the image `service/code-interpreter`: in the default context of
        the language (default: python), or in the context of that id. Variables stay for the next call. After `timeout`
        seconds the code is interrupted, with the error `TimeoutError`.
        """
        return await run_code(
            self._berth,
            self.address,
            code,
            language=language,
            context=context,
            env=env,
            on_stdout=on_stdout,
            on_stderr=on_stderr,
            on_result=on_result,
            timeout=timeout,
        )

    async def create_code_context(
        self, *, language: Optional[str] = None, cwd: Optional[str] = None, timeout: Optional[float] = None
    ) -> CodeContext:
        """A context of its own for `run_code`."""
        return await create_code_context(self._berth, self.address, language=language, cwd=cwd, timeout=timeout)

    async def start(
        self,
        command: str,
        *,
        cwd: Optional[str] = None,
        env: Optional[Dict[str, str]] = None,
        name: Optional[str] = None,
        wait_for_ports: Optional[Sequence[int]] = None,
        keep_alive: Optional[bool] = None,
        stdin: Optional[bool] = None,
        timeout: Optional[float] = None,
    ) -> AsyncSandboxProcess:
        """Starts a command in the background. `wait_for_ports` returns when all of these ports are open."""
        ports = None if wait_for_ports is None else [*wait_for_ports]
        where = {"workingDir": cwd, "env": env}
        how = {"waitForPorts": ports, "keepAlive": keep_alive, "stdin": stdin}
        body = without_none({"command": command, "name": name, **where, **how})
        answer = await self._ask("POST", "/process", body=body, timeout=timeout)
        return AsyncSandboxProcess(self._berth, self.address, ProcessState.of(answer))

    async def process(self, id: str, *, timeout: Optional[float] = None) -> AsyncSandboxProcess:
        """A process by its name or pid."""
        answer = await self._ask("GET", f"/process/{segment('id', id)}", timeout=timeout)
        return AsyncSandboxProcess(self._berth, self.address, ProcessState.of(answer))

    async def processes(self, *, timeout: Optional[float] = None) -> List[ProcessState]:
        return [ProcessState.of(each) for each in await self._ask("GET", "/process", timeout=timeout)]

    def logs(
        self, *, since: Optional[float] = None, follow: bool = False, search: Optional[str] = None
    ) -> AsyncIterator[LogLine]:
        """What its processes have written, oldest first. `since` is seconds, `follow` goes on with later lines."""
        subject = {"resource_type": "sandboxes", "workload_ids": self.name}
        return read_logs(self._berth, subject, since=since, follow=follow, search=search)

    async def fork(
        self, *, name: Optional[str] = None, snapshot_id: Optional[str] = None, timeout: Optional[float] = None
    ) -> AsyncSandbox:
        """A new sandbox with the files of this one, as they are now or in a snapshot."""
        target = name or f"{self.name[: _NAME_MAX - 9]}-{random_word(8)}"
        body: Any = without_none({"targetName": target, "snapshotId": snapshot_id})
        await self._berth.api.sandbox_fork(self.name, body, timeout=timeout)
        return await AsyncSandbox.get(target, berth=self._berth, timeout=timeout)

    async def snapshot(self, name: Optional[str] = None, *, timeout: Optional[float] = None) -> str:
        """Keeps the files as they are now; `fork(snapshot_id=…)` starts from them."""
        body: Any = without_none({"name": name})
        made: Any = await self._berth.api.snapshot_create(self.name, body, timeout=timeout)
        return str(made["id"])

    async def preview(
        self,
        port: int,
        *,
        public: bool = False,
        name: Optional[str] = None,
        ttl: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> AsyncPreview:
        """An address of its own for a port, for browsers and people without a key."""
        return await open_preview(self._berth, self.name, port, public=public, name=name, ttl=ttl, timeout=timeout)

    async def fetch(self, port: int, path: str = "/", *, method: str = "GET", **options: Any) -> httpx.Response:
        """Sends a request to a port, with the caller's credentials. Options are those of httpx."""
        at_port = f"{self.address}/port/{segment('port', str(port))}"
        return await self._berth.request(method, url_below(at_port, path), **options)

    async def delete(self, *, timeout: Optional[float] = None) -> None:
        """Deletes the sandbox and its files. One that is gone already is no error."""
        try:
            await self._berth.api.sandbox_delete(self.name, timeout=timeout)
        except BerthError as error:
            if error.status != 404:
                raise

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.delete()

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        return await self._berth.ask_workload(self.address, method, path, **options)
