"""Checked with `mypy --strict` against the installed SDK, not run: what comes out has the types that people expect."""

from typing import List

from berth_sdk import AsyncSandbox, Berth, Finished, Job, Model, Sandbox
from berth_sdk.generated.types import SandboxRecord


def sandboxes(berth: Berth) -> None:
    with Sandbox.create(memory_mb=512) as box:
        finished: Finished = box.run("npm test", cwd="/app")
        code: int = finished.exit_code
        record: SandboxRecord = box.record
        lines: List[str] = [line.message for line in box.logs()]
        name: str = berth.api.sandbox_get("box")["metadata"]["name"]
        print(code, record, lines, name)
    status: str = Job("j").run([{"page": 1}]).wait()["status"]
    vectors: List[List[float]] = Model("m").embeddings(["a"])
    print(status, vectors)


async def asynchronous() -> None:
    async with await AsyncSandbox.create() as box:
        text: str = (await box.run("true")).stdout
        lines: List[str] = [line.message async for line in box.logs()]
        print(text, lines)


def mistakes(berth: Berth) -> None:
    Sandbox.create(memory=512)  # type: ignore[call-arg]
    berth.api.sandbox_get()  # type: ignore[call-arg]
    berth.api.drive_list(sort="size:asc")  # type: ignore[arg-type]
