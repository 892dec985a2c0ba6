/**
 * Sleep on disk: a platform that writes the memory of the workload to disk cannot write sockets that lead to the
 * machine. The daemon therefore closes its own and opens them again once the platform has removed a file.
 */
import { existsSync, rmSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { CONTROL } from "../../contract/sandbox-wire.ts";
import { ApiError } from "../http/api-error.ts";
import type { Call } from "../http/call.ts";
import { sendJson } from "../http/send.ts";

/** A server, and the file that it listens at. */
export interface Door {
  server: Server;
  path: string;
}

const LOOK_MS = 20;

export const isSleep = (method: string | undefined, path: string): boolean =>
  method === "POST" && path === CONTROL.sleep;

export function answerSleep({ daemon, res }: Call): void {
  const { portConnections, doorConnections, terminalClients } = daemon.activity();
  if (!daemon.sleep) throw new ApiError(409, "This workload cannot sleep on disk.");
  if (portConnections + doorConnections + terminalClients > 0) throw new ApiError(409, "A connection is open.");
  if (daemon.trim.busy > 0) throw new ApiError(409, "A request is open.");
  const { sleep } = daemon;
  res.once("close", () => void sleep());
  res.setHeader("connection", "close");
  sendJson(res, 200, {});
}

interface Sleep {
  doors: readonly Door[];
  asleepFile: string;
  /** Called before the doors open. */
  wake(): void;
  open(door: Door): Promise<void>;
}

/** Resolves when the doors are open again. */
export async function sleepBehind({ doors, asleepFile, wake, open }: Sleep): Promise<void> {
  await Promise.all(doors.map(shut));
  while (existsSync(asleepFile)) await pause(LOOK_MS);
  wake();
  await Promise.all(doors.map(open));
}

function shut({ server, path }: Door): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      rmSync(path, { force: true }); // tells the platform that the socket is closed
      resolve();
    });
    if (isHttp(server)) server.closeAllConnections();
  });
}

const isHttp = (server: Server): server is HttpServer => "closeAllConnections" in server;
