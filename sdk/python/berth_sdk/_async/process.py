"""Commands of a sandbox: one that is run to its end, and processes in the background."""

from __future__ import annotations

import json
import math
import re
from typing import Any, AsyncIterator, Callable, Dict, Optional

from .._address import segment
from .._words import random_word, without_none
from ..errors import BerthError
from ..values import Finished, OutputLine, ProcessState
from .berth import AsyncBerth
from .transport import lines_of

_LINE = re.compile(r"(stdout|stderr):(.*)", re.DOTALL)
_BYTES = {"content-type": "application/octet-stream"}


class AsyncSandboxProcess:
    """A process that runs in the background."""

    def __init__(self, berth: AsyncBerth, address: str, state: ProcessState) -> None:
        self._berth = berth
        self._address = address
        self._path = f"/process/{segment('pid', state.pid)}"
        self.pid = state.pid
        self.name = state.name
        self.command = state.command

    async def state(self, *, timeout: Optional[float] = None) -> ProcessState:
        return ProcessState.of(await self._berth.ask_workload(self._address, "GET", self._path, timeout=timeout))

    async def logs(self, *, timeout: Optional[float] = None) -> AsyncIterator[OutputLine]:
        """The lines that it has printed and prints, until it ends."""
        path = f"{self._path}/logs/stream"
        async with self._berth.stream_workload(self._address, "GET", path, timeout=timeout) as response:
            async for line in lines_of(response):
                found = _LINE.fullmatch(line)
                if found:
                    yield OutputLine("stderr" if found[1] == "stderr" else "stdout", found[2])

    async def wait(self, *, timeout: Optional[float] = None) -> Finished:
        """Waits for the end; returns its exit code and everything it has printed."""
        async for _ in self.logs(timeout=timeout):
            pass
        state = await self.state()
        output = await self._berth.ask_workload(self._address, "GET", f"{self._path}/logs")
        exit_code = -1 if state.exit_code is None else state.exit_code
        return Finished(exit_code, output.get("stdout", ""), output.get("stderr", ""))

    async def write(self, data: str | bytes, *, end: bool = False, timeout: Optional[float] = None) -> None:
        """Writes to its standard input, which `start` has to be asked for with `stdin=True`."""
        await write_input(self._berth, self._address, self._path, data, end=end, timeout=timeout)

    async def stop(self, *, timeout: Optional[float] = None) -> None:
        """Asks it and its children to end (SIGTERM). One that has ended is no error."""
        await end_process(self._berth, self._address, self._path, timeout)

    async def kill(self, *, timeout: Optional[float] = None) -> None:
        """Ends it and its children at once (SIGKILL). One that has ended is no error."""
        await end_process(self._berth, self._address, f"{self._path}/kill", timeout)


async def run_command(
    berth: AsyncBerth,
    address: str,
    command: str,
    *,
    cwd: Optional[str],
    env: Optional[Dict[str, str]],
    input: str | bytes | None,
    on_stdout: Optional[Callable[[str], Any]],
    on_stderr: Optional[Callable[[str], Any]],
    timeout: Optional[float],
) -> Finished:
    """
    The answer is a stream with signs of life, so a command may take hours. A caller that leaves kills the command, and
    the sandbox itself kills a command whose time is over.
    """
    name = f"run-{random_word(12)}"
    body = without_none({"command": command, "name": name, "workingDir": cwd, "env": env})
    if timeout is not None:
        body.update(keepAlive=True, timeout=max(1, math.ceil(timeout)))
    if input is not None:
        body.update(stdin=True)
    printed = {"stdout": "", "stderr": ""}
    told = {"stdout": on_stdout, "stderr": on_stderr}
    headers = {"accept": "text/event-stream"}
    try:
        async with berth.stream_workload(address, "POST", "/process", body=body, headers=headers) as response:
            if input is not None:
                await _write_all(berth, address, f"/process/{name}", input)
            async for line in lines_of(response):
                event = json.loads(line)
                kind, data = event["type"], event.get("data", "")
                if kind in printed:
                    printed[kind] += data
                    callback = told[kind]
                    if callback is not None:
                        callback(data)
                elif kind == "result":
                    return _finished(ProcessState.of(json.loads(data)), printed, command, timeout)
                elif kind == "error":
                    raise BerthError("refused", data, status=422)
    except BerthError:
        raise
    except BaseException:
        # The caller has been cancelled or interrupted; the sandbox may be gone by now as well.
        try:
            await end_process(berth, address, f"/process/{name}/kill", None)
        except BerthError:
            pass
        raise
    raise BerthError("broken_stream", f"The connection ended before the command did: {command}")


def _finished(state: ProcessState, printed: Dict[str, str], command: str, timeout: Optional[float]) -> Finished:
    if timeout is not None and state.status == "killed":
        raise BerthError("timeout", f"The command did not end within {timeout} s: {command}")
    exit_code = -1 if state.exit_code is None else state.exit_code
    return Finished(exit_code, printed["stdout"], printed["stderr"])


async def _write_all(berth: AsyncBerth, address: str, path: str, data: str | bytes) -> None:
    try:
        await write_input(berth, address, path, data, end=True, timeout=None)
    except BerthError:
        pass  # a command may end without reading its input


async def write_input(
    berth: AsyncBerth, address: str, path: str, data: str | bytes, *, end: bool, timeout: Optional[float]
) -> None:
    content = data.encode() if isinstance(data, str) else data
    target = f"{path}/stdin{'?end=true' if end else ''}"
    await berth.ask_workload(address, "POST", target, content=content, headers=_BYTES, timeout=timeout)


async def end_process(berth: AsyncBerth, address: str, path: str, timeout: Optional[float]) -> None:
    """A process that is not running any more is where the caller wants it."""
    try:
        await berth.ask_workload(address, "DELETE", path, repeatable=True, timeout=timeout)
    except BerthError as error:
        if error.status != 404:
            raise
