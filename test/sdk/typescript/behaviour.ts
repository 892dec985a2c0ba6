/** What the SDK does with a real sandbox; prints one line, which every SDK prints. */
import { BerthError, Sandbox } from "@berth/sdk";

const BYTES = 6 * 1024 * 1024;
const codeOf = (error: unknown): string => (error instanceof BerthError ? error.code : String(error));

const idempotencyKey = `behaviour-${Date.now()}`;
const box = await Sandbox.create({ memoryMb: 512, idempotencyKey });
const again = await Sandbox.create({ memoryMb: 512, idempotencyKey });
const known = await Sandbox.getOrCreate({ name: box.name });

await box.files.write("/data/big.bin", new Uint8Array(BYTES).fill(7));
const bytes = await box.files.readBytes("/data/big.bin");
const { stdout } = await box.run("head -c 1000000 /dev/zero | tr '\\0' x");

const process = await box.start("echo one; echo two >&2");
const lines: string[] = [];
for await (const line of process.logs()) lines.push(`${line.stream} ${line.text}`);

const stopped = await box.run("sleep 600", { timeoutMs: 1000 }).then(String, codeOf);
const aborter = new AbortController();
const left = await box
  .run("echo begun; sleep 600", { signal: aborter.signal, onStdout: () => aborter.abort(new Error("enough")) })
  .then(String, (error: Error) => (error.message === "enough" ? "cancelled" : String(error)));
// A killed process is told as running until the kernel has ended it.
const running = async (): Promise<string[]> =>
  (await box.processes()).filter(({ status }) => status === "running").map(({ command }) => command);
let still = await running();
while (still.length > 0) {
  await new Promise((resolve) => setTimeout(resolve, 50));
  still = await running();
}

await box.files.remove("/data");
const gone = await box.files.exists("/data/big.bin");
await box.delete();
await box.delete();
const deleted = await Sandbox.get(box.name).then(
  ({ record }) =>
    record.status === "TERMINATED" || record.status === "DELETING" ? "not_found" : String(record.status),
  codeOf,
);

const done = {
  sameKey: again.name === box.name ? "one sandbox" : again.name,
  getOrCreate: known.name === box.name ? "the same sandbox" : known.name,
  bytes: bytes.every((byte) => byte === 7) ? bytes.length : "other bytes",
  output: stdout.length,
  lines: lines.sort((a, b) => b.localeCompare(a)),
  stopped,
  left,
  running: still,
  gone,
  deleted,
};
console.log(JSON.stringify({ done }));
