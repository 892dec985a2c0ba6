"""What the SDK does with a real sandbox; prints one line, which every SDK prints."""

import asyncio
import json
import time

from berth_sdk import AsyncSandbox, BerthError, Sandbox

BYTES = 6 * 1024 * 1024

key = f"behaviour-{time.time()}"
box = Sandbox.create(memory_mb=512, idempotency_key=key)
again = Sandbox.create(memory_mb=512, idempotency_key=key)
known = Sandbox.get_or_create(box.name)

box.files.write("/data/big.bin", b"\x07" * BYTES)
data = box.files.read_bytes("/data/big.bin")
stdout = box.run("head -c 1000000 /dev/zero | tr '\\0' x").stdout
lines = [f"{line.stream} {line.text}" for line in box.start("echo one; echo two >&2").logs()]

stopped = ""
try:
    box.run("sleep 600", timeout=1)
except BerthError as error:
    stopped = error.code


async def leave() -> str:
    same = await AsyncSandbox.get(box.name)
    begun = asyncio.Event()
    task = asyncio.create_task(same.run("echo begun; sleep 600", on_stdout=lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    return "finished"


left = asyncio.run(leave())
# A killed process is told as running until the kernel has ended it.
running = ["unknown"]
while running:
    time.sleep(0.05)
    running = [state.command for state in box.processes() if state.status == "running"]

box.files.remove("/data")
gone = box.files.exists("/data/big.bin")
box.delete()
box.delete()
try:
    status = Sandbox.get(box.name).record.get("status")
    deleted = "not_found" if status in ("TERMINATED", "DELETING") else status
except BerthError as error:
    deleted = error.code

done = {
    "sameKey": "one sandbox" if again.name == box.name else again.name,
    "getOrCreate": "the same sandbox" if known.name == box.name else known.name,
    "bytes": len(data) if data == b"\x07" * BYTES else "other bytes",
    "output": len(stdout),
    "lines": sorted(lines, reverse=True),
    "stopped": stopped,
    "left": left,
    "running": running,
    "gone": gone,
    "deleted": deleted,
}
print(json.dumps({"done": done}))
