/**
 * The new server's half of an upgrade. Started by the old server as its child, it loads all code and tries the database
 * while the old one serves, and takes over the data folder and the port when told. It exits when the old server ends
 * before that.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { App } from "../../app.ts";
import { type Config, driverDir } from "../../config.ts";
import type { ProcessIdentity } from "../../lib/process-note.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { DRIVERS } from "../../node/drivers/index.ts";
import { rehearseStart } from "../../store/upgrade/rehearsal.ts";
import { type FromOld, PORT_FD, tellOld } from "./messages.ts";

export interface Turn {
  port: { fd: number };
  requireMachine: boolean;
  /** The process that was started first; see attend.ts. */
  attendant: ProcessIdentity;
}

/** Resolves when the old server has stopped. */
export async function awaitTurn(config: Config): Promise<Turn> {
  if (!process.send) throw new UsageError("--take-over is for `berth upgrade`.", "use `berth up`");
  const gone = once(process, "disconnect").then(() => {
    throw new UsageError("the old server has ended.");
  });
  gone.catch(() => {}); // after the turn the old server may exit
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

/** Reports that this server is ready, and serves the connections that waited. */
export async function finishTurn({ port }: App): Promise<void> {
  const done = Promise.withResolvers<void>();
  process.on("message", (message: FromOld, socket?: Socket) => {
    // The message of a client that has disconnected comes without a socket.
    if (message.type === "connection" && socket) port.adopt(socket);
    if (message.type === "bye") done.resolve();
  });
  process.once("disconnect", () => done.resolve());
  await tellOld({ type: "ready" });
  await done.promise;
  if (process.connected) process.disconnect();
}

/** Loads the code that a start needs, and compiles the sandbox daemon, which takes seconds. */
async function loadAll(config: Config): Promise<void> {
  const [{ cachedSandboxd }] = await Promise.all([
    import("../../node/sandboxd-build.ts"),
    DRIVERS[config.driver](),
    import("../../app.ts"),
  ]);
  // Where the daemon cannot be compiled, workloads may not run on this machine at all; the start reports that.
  await cachedSandboxd(join(driverDir(config), "bin")).catch(() => {});
}
