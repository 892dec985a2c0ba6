/**
 * The driver's control socket: warms a prepared sandbox up, asks whether it may sleep and what it serves. Not reachable
 * by tenants.
 */

import { createServer, type Server } from "node:http";
import { CONTROL } from "../../contract/sandbox-wire.ts";
import { collectGarbage } from "../bun.ts";
import type { Daemon } from "../daemon-context.ts";
import { ApiError } from "../http/api-error.ts";
import type { Call } from "../http/call.ts";
import { requestPath } from "../http/call.ts";
import { fail } from "../http/fail.ts";
import { boundHalfOpen } from "../http/half-open.ts";
import { sendJson } from "../http/send.ts";
import { servingProcess } from "../process/serving.ts";
import { answerSleep, isSleep } from "./sleep.ts";

export function createControlServer(daemon: Daemon, api: Server): Server {
  const server = createServer((req, res) => {
    const path = requestPath(req);
    const call: Call = { req, res, path, daemon, query: new URLSearchParams(), params: [], signal: NEVER };
    answer(call, api).catch((error: unknown) => fail(res, error));
  });
  boundHalfOpen(server);
  return server;
}

const NEVER = new AbortController().signal;
/** The addresses of the API that a warm-up asks. */
const WARMED: Readonly<Record<string, string | undefined>> = {
  [CONTROL.warm]: "/process",
  [CONTROL.warmE2b]: "/e2b/process.Process/Start",
};

async function answer(call: Call, api: Server): Promise<void> {
  const { daemon, path, req, res } = call;
  if (path === CONTROL.activity && req.method === "GET") return sendJson(res, 200, daemon.activity());
  if (path.startsWith(CONTROL.serving) && req.method === "GET") {
    const found = servingProcess(Number(path.slice(CONTROL.serving.length)), daemon.environment);
    if (!found) throw new ApiError(404, "Nothing listens on that port.");
    return sendJson(res, 200, found);
  }
  const warmed = req.method === "POST" ? WARMED[path] : undefined;
  if (warmed !== undefined) {
    req.url = warmed;
    res.once("finish", () => {
      daemon.processes.forgetEnded();
      collectGarbage();
    });
    return void api.emit("request", req, res);
  }
  if (isSleep(req.method, path)) return answerSleep(call);
  // Loaded only when asked for: drivers that share a folder with the workload ask for none of these.
  const remote = (await import("./remote-control.ts")).remoteHandler(req.method ?? "GET", path);
  if (remote) return remote(call);
  throw new ApiError(404, `The control socket has no ${req.method} ${path}.`);
}
