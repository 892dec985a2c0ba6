/**
 * The new server's half of an upgrade. Started by the old one as its child, it loads all code and tries out the
 * database while the old one serves; takes over the data folder and the port when told; and ends when the old one is
 * gone before that.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { App } from "../../app.ts";
import type { Config } from "../../config.ts";
import type { ProcessIdentity } from "../../lib/process-note.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { rehearseStart } from "../../store/upgrade/rehearsal.ts";
import { type FromOld, PORT_FD, tellOld } from "./messages.ts";

export interface Turn {
  port: { fd: number };
  requireMachine: boolean;
  /** The process that was started first. */
  attendant: ProcessIdentity;
}

/** Resolves when the old server has stopped. */
export async function awaitTurn(config: Config): Promise<Turn> {
  if (!process.send) throw new UsageError("--take-over is for `berth upgrade`.", "use `berth up`");
  const gone = once(process, "disconnect").then(() => {
    throw new UsageError("the old server has ended.");
  });
  gone.catch(() => {}); // after its turn it may end
  const told = (once(process, "message") as Promise<[FromOld]>).then(([message]) => message);
  const migrations = await rehearseStart({
    databaseUrl: config.database_url ?? null,
    dataDir: config.data,
    nowMs: Date.now(),
  });
  await loadAll(config);
  await tellOld({ type: "loaded", migrations });
  const message = await Promise.race([told, gone]);
  if (message.type !== "go") throw new Error(`expected to be told to go, got ${message.type}`);
  const { attendant, requireMachine } = message;
  return { port: { fd: PORT_FD }, attendant, requireMachine };
}

/** Says that this server is ready, and serves the connections that waited. */
export async function finishTurn({ port }: App): Promise<void> {
  const done = Promise.withResolvers<void>();
  process.on("message", (message: FromOld, socket?: Socket) => {
    // A client that did not wait leaves a message without its connection.
    if (message.type === "connection" && socket) port.adopt(socket);
    if (message.type === "bye") done.resolve();
  });
  process.once("disconnect", () => done.resolve());
  await tellOld({ type: "ready" });
  await done.promise;
  if (process.connected) process.disconnect();
}

/** What a start loads, and the daemon of sandboxes, which takes seconds to compile. */
async function loadAll(config: Config): Promise<void> {
  const [{ cachedSandboxd }] = await Promise.all([
    import("../../node/sandboxd-build.ts"),
    import("../../node/drivers/local/local-driver.ts"),
    import("../../app.ts"),
  ]);
  // Where it cannot be compiled, workloads may not run on this machine at all: the start tells.
  await cachedSandboxd(join(config.data, "runtime", "bin")).catch(() => {});
}
