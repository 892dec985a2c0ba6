/**
 * File requests of a sandbox whose owner set BL_SANDBOX_USER. The daemon runs as root and does not touch the files: it
 * forwards each request to a helper process with that user's rights, which is the same program (see child.ts). The
 * kernel then decides what the user may do, on every path, through every link.
 */

import { chownSync, mkdirSync, rmSync } from "node:fs";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream";
import type { SandboxdConfig, SandboxUser } from "../../../contract/sandbox-wire.ts";
import { type Child, selfArgv } from "../../bun.ts";
import { ApiError } from "../../http/api-error.ts";
import type { Environment } from "../../process/environment.ts";
import { spawnExpendable } from "../../process/expendable.ts";
import type { HelperTask } from "./helper-task.ts";
import { HELPER_VARIABLE } from "./helper-task.ts";

/** Hop-by-hop headers: they describe one connection and are not forwarded to the other. */
const HOP_HEADERS = ["connection", "keep-alive", "transfer-encoding", "upgrade", "expect"];

interface Helper {
  user: SandboxUser;
  child: Child;
  /** Where the helper listens; only root may connect. */
  socket: string;
  ready: Promise<void>;
}

export class UserFiles {
  readonly #config: SandboxdConfig;
  readonly #environment: Environment;
  #helper: Helper | null = null;

  constructor(config: SandboxdConfig, environment: Environment) {
    this.#config = config;
    this.#environment = environment;
  }

  /** Forwards a request to the helper and its response to the client. */
  async forward(user: SandboxUser, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const socketPath = await this.#socketFor(user);
    await new Promise<void>((resolve, reject) => {
      const out = request(
        { socketPath, method: req.method, path: req.url, headers: endToEnd(req.headers) },
        (answer) => {
          res.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
          res.flushHeaders();
          pipeline(answer, res, () => resolve()); // a client that left, or a helper that ended, cuts the answer short
        },
      );
      out.once("error", () => reject(unavailable()));
      res.once("close", () => out.destroy());
      pipeline(req, out, () => {}); // a failure shows in the response
    });
  }

  /** Runs a tool of the MCP server in the helper. */
  async callTool(user: SandboxUser, name: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
    const socketPath = await this.#socketFor(user);
    const text = await new Promise<string>((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      const out = request({ socketPath, method: "POST", path: "/tool", headers }, async (answer) => {
        const chunks: Buffer[] = [];
        for await (const chunk of answer) chunks.push(chunk as Buffer);
        const body = Buffer.concat(chunks).toString("utf8");
        if (answer.statusCode === 200) resolve(body);
        else reject(new ApiError(answer.statusCode ?? 502, (JSON.parse(body) as { error: string }).error));
      });
      out.once("error", () => reject(unavailable()));
      out.end(JSON.stringify({ name, args }));
    });
    return JSON.parse(text) as Record<string, unknown>;
  }

  async #socketFor(user: SandboxUser): Promise<string> {
    const there = this.#helper;
    const usable = there?.user.uid === user.uid && there.user.gid === user.gid && !hasEnded(there.child) ? there : null;
    if (there && !usable) there.child.kill("SIGKILL");
    this.#helper = usable ?? this.#start(user);
    await this.#helper.ready;
    return this.#helper.socket;
  }

  #start(user: SandboxUser): Helper {
    const { stateDir, apiSocket } = this.#config;
    const socket = join(stateDir, "files.sock");
    // Beside the daemon's own state folder, which the user may not enter.
    const userState = join(dirname(apiSocket), `state-${user.uid}`);
    rmSync(socket, { force: true });
    mkdirSync(userState, { recursive: true, mode: 0o700 });
    chownSync(userState, user.uid, user.gid);
    const task: HelperTask = { socket, user, config: { ...this.#config, stateDir: userState } };
    const child = spawnExpendable(this.#environment, [...selfArgv(), "files"], {
      cwd: "/",
      env: { ...process.env, [HELPER_VARIABLE]: JSON.stringify(task) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    return { user, child, socket, ready: firstWord(child) };
  }
}

const hasEnded = ({ exitCode, signalCode }: Child): boolean => exitCode !== null || signalCode !== null;

/** Waits for READY, which the helper writes once it listens and has given up root. */
async function firstWord(child: Child): Promise<void> {
  const reader = child.stdout?.getReader();
  const word = await reader?.read();
  if (!word || word.done) throw unavailable();
}

const unavailable = (): ApiError => new ApiError(503, "The process that handles this user's files ended. Try again.");

type Headers = IncomingMessage["headers"];

const endToEnd = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_HEADERS.includes(name)));
