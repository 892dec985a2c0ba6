/** The driver's own socket: claiming a prepared sandbox, and asking whether it may sleep. No tenant reaches it. */
import { createServer, type Server } from "node:http";
import { CONTROL, type SandboxClaim } from "../contract/sandbox-wire.ts";
import { ApiError } from "./api-error.ts";
import { mistakeInClaim } from "./config.ts";
import type { Daemon } from "./daemon.ts";
import { type Call, readJson, sendJson } from "./http-call.ts";
import { fail, requestPath } from "./http-server.ts";

export function createControlServer(daemon: Daemon): Server {
  return createServer((req, res) => {
    const path = requestPath(req);
    const call: Call = { req, res, path, daemon, query: new URLSearchParams(), params: [], signal: NEVER };
    answer(call).catch((error: unknown) => fail(res, error));
  });
}

const NEVER = new AbortController().signal;

async function answer(call: Call): Promise<void> {
  const { daemon, path, req, res } = call;
  if (path === CONTROL.activity && req.method === "GET") return sendJson(res, 200, daemon.activity());
  if (path === CONTROL.claim && req.method === "POST") {
    const claim = await readJson(call);
    const wrong = mistakeInClaim(claim);
    if (wrong) throw new ApiError(400, wrong);
    daemon.environment.claim(claim as SandboxClaim);
    return sendJson(res, 200, {});
  }
  throw new ApiError(404, `The control socket has no ${req.method} ${path}.`);
}
