"""Code in the interpreter of a sandbox, whose image is `service/code-interpreter` or sets `BERTH_SERVE_49999`."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Optional

from .._words import without_none
from ..values import CodeContext, CodeError, CodeExecution, CodeResult
from .berth import AsyncBerth
from .transport import lines_of

_PORT_PATH = "/port/49999"


async def run_code(
    berth: AsyncBerth,
    address: str,
    code: str,
    *,
    language: Optional[str],
    context: Optional[str],
    env: Optional[Dict[str, str]],
    on_stdout: Optional[Callable[[str], Any]],
    on_stderr: Optional[Callable[[str], Any]],
    on_result: Optional[Callable[[CodeResult], Any]],
    timeout: Optional[float],
) -> CodeExecution:
    body = without_none({"code": code, "language": language, "context_id": context, "env_vars": env})
    if timeout is not None:
        body.update(timeout_ms=round(timeout * 1000))
    execution = CodeExecution()
    told = {"stdout": on_stdout, "stderr": on_stderr}
    path = f"{_PORT_PATH}/execute"
    async with berth.stream_workload(address, "POST", path, body=body) as response:
        async for line in lines_of(response):
            message = json.loads(line)
            kind = message["type"]
            if kind == "stdout":
                execution.stdout += message["text"]
            elif kind == "stderr":
                execution.stderr += message["text"]
            elif kind == "result":
                result = CodeResult.of(message)
                execution.results.append(result)
                if result.is_main:
                    execution.text = result.text
                if on_result is not None:
                    on_result(result)
            elif kind == "error":
                execution.error = CodeError(message["name"], message["value"], message["traceback"])
            callback = told.get(kind)
            if callback is not None:
                callback(message["text"])
    return execution


async def create_code_context(
    berth: AsyncBerth, address: str, *, language: Optional[str], cwd: Optional[str], timeout: Optional[float]
) -> CodeContext:
    body = without_none({"language": language, "cwd": cwd})
    made = await berth.ask_workload(address, "POST", f"{_PORT_PATH}/contexts", body=body, timeout=timeout)
    return CodeContext(made["id"], made["language"], made["cwd"])
