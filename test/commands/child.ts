/**
 * Runs commands of `berth` one after the other: `node child.ts ROOT`, told over the channel to its parent (`host.ts`).
 * What a command that ends this process has printed goes to the real streams.
 */
import { writeSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { Order, Said } from "./host.ts";

const FETCH_DISPATCHER = Symbol.for("undici.globalDispatcher.1");
const STREAMS = { stdout: 1, stderr: 2 } as const;

const root = process.argv[2] ?? "";
const { tuneStart } = (await import(join(root, "bin/tune-start.js"))) as { tuneStart(): void };
tuneStart();
const { main } = (await import(join(root, "src/main.ts"))) as { main(args: readonly string[]): Promise<void> };

const printed: Record<keyof typeof STREAMS, Buffer[]> = { stdout: [], stderr: [] };
for (const name of ["stdout", "stderr"] as const) {
  process[name].setMaxListeners(0); // each command listens for the end of its reader
  process[name].write = ((chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    printed[name].push(Buffer.from(chunk as string));
    const done = rest.find((each) => typeof each === "function") as (() => void) | undefined;
    if (done) process.nextTick(done);
    return true;
  }) as typeof process.stdout.write;
}
process.on("exit", () => {
  for (const name of ["stdout", "stderr"] as const) writeSync(STREAMS[name], taken(name));
});
process.on("message", async ({ args, env, cwd, input }: Order) => {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  const stdin = Readable.from(input === "" ? [] : [Buffer.from(input)], { objectMode: false });
  Object.defineProperty(process, "stdin", { value: stdin, configurable: true });
  process.exitCode = 0;
  await main(args);
  closeConnections();
  process.chdir("/"); // the folder of the command may be removed
  process.send?.({ code: Number(process.exitCode), stdout: taken("stdout"), stderr: taken("stderr") } satisfies Said);
});
process.on("disconnect", () => process.exit(0));

/** A command keeps no connection for the next one, whose server may be another on the same port. */
function closeConnections(): void {
  http.globalAgent.destroy();
  https.globalAgent.destroy();
  const global = globalThis as unknown as Record<symbol, { close(): Promise<void>; constructor: new () => unknown }>;
  const dispatcher = global[FETCH_DISPATCHER];
  if (!dispatcher) return;
  Object.defineProperty(global, FETCH_DISPATCHER, { value: new dispatcher.constructor() });
  void dispatcher.close();
}

function taken(name: keyof typeof STREAMS): string {
  return Buffer.concat(printed[name].splice(0)).toString();
}
