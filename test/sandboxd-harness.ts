/**
 * Starts the real, compiled daemon in a temporary folder and talks to it over its unix sockets, byte for byte: no client
 * library may touch the paths. Disposing kills everything the daemon has started.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { SANDBOXD_RUNTIME_ENV, type SandboxdConfig } from "../src/contract/sandbox-wire.ts";
import { findBun } from "../src/lib/bun-program.ts";
import { sandboxdBinary } from "./sandboxd-binary.ts";

/** For `test(name, { skip }, ...)`. */
export const skip: false | string =
  findBun() === null || process.platform !== "linux"
    ? "sandboxd needs Linux and Bun: npm install --include=optional"
    : false;

/** Far longer than anything takes, also on a busy machine: what waits in vain fails. */
const WAIT_MAX_MS = 90_000;
const LOOK_MAX_MS = 100;

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  text: string;
  /** Whatever the daemon sent; the tests check it member by member. */
  json: ReturnType<typeof JSON.parse>;
}

export interface Ask {
  headers?: Record<string, string>;
  /** An object is sent as JSON. */
  body?: unknown;
  socket?: "api" | "control";
}

export interface TestDaemon extends AsyncDisposable {
  folder: string;
  workDir: string;
  config: SandboxdConfig;
  process: ChildProcess;
  ask(method: string, path: string, options?: Ask): Promise<Answer>;
  /** The answer's body as it comes. */
  open(method: string, path: string, options?: Ask): Promise<IncomingMessage>;
  exec(command: string, more?: Record<string, unknown>): Promise<Answer>;
  portDoor(port: number): Promise<{ line: string; socket: Socket }>;
  ready(): Promise<void>;
}

export interface StartOptions {
  mode?: "init" | "serve";
  config?: Partial<SandboxdConfig> | ((folder: string) => Partial<SandboxdConfig>);
  env?: Record<string, string>;
  args?: (folder: string) => string[];
}

export async function startSandboxd({
  mode = "serve",
  config = {},
  env = {},
  args = () => [],
}: StartOptions = {}): Promise<TestDaemon> {
  const executable = await sandboxdBinary();
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sandboxd-")));
  const workDir = join(folder, "work");
  mkdirSync(workDir);
  const full: SandboxdConfig = {
    apiSocket: join(folder, "api.sock"),
    portSocket: join(folder, "ports.sock"),
    controlSocket: join(folder, "control.sock"),
    stateDir: join(folder, "state"),
    logDir: join(folder, "logs"),
    workDir,
    readyFd: 3,
    ...(typeof config === "function" ? config(folder) : config),
  };
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify(full));
  const child = spawn(executable, [mode, "--config", file, ...args(folder)], {
    cwd: folder,
    env: { ...SANDBOXD_RUNTIME_ENV, PATH: process.env.PATH ?? "", HOME: folder, ...env },
    stdio: [...stdioUntil(full.readyFd ?? 3), "pipe"],
  });
  const sockets = { api: full.apiSocket, control: full.controlSocket };
  const open = (method: string, path: string, { headers = {}, body, socket = "api" }: Ask = {}) =>
    send(sockets[socket], method, path, headers, body);
  const ask = async (method: string, path: string, options?: Ask): Promise<Answer> =>
    answerOf(await open(method, path, options));
  const daemon: TestDaemon = {
    folder,
    workDir,
    config: full,
    process: child,
    ask,
    open,
    exec: (command, more = {}) => ask("POST", "/process", { body: { command, waitForCompletion: true, ...more } }),
    portDoor: (port) => throughPortDoor(full.portSocket, port),
    ready: () => eventually(async () => (await ask("GET", "/health")).status === 200),
    [Symbol.asyncDispose]: () => stop(daemon),
  };
  try {
    await readiness(child, full.readyFd ?? 3);
  } catch (error) {
    await stop(daemon);
    throw error;
  }
  return daemon;
}

/** One request to a daemon that somebody else has started. */
export const askAt = async (socket: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  answerOf(await send(socket, method, path, {}, body));

async function answerOf(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString("utf8");
  const isJson = response.headers["content-type"]?.startsWith("application/json") && text !== "";
  const json = isJson ? JSON.parse(text) : undefined;
  return { status: response.statusCode ?? 0, headers: response.headers, bytes, text, json };
}

/** Waits for a state; throws when it does not come. */
export async function eventually(check: () => Promise<boolean> | boolean, what = "the expected state"): Promise<void> {
  const deadline = Date.now() + WAIT_MAX_MS;
  let failure: unknown;
  for (let looks = 1; Date.now() < deadline; looks += 1) {
    try {
      if (await check()) return;
    } catch (error) {
      failure = error;
    }
    // Many checks ask a server, which then has less time for what they wait for.
    await pause(Math.min(looks * 10, LOOK_MAX_MS));
  }
  throw new Error(`${what} did not come`, { cause: failure });
}

/** Children of a process, from /proc. */
export const childrenOf = (pid: number | undefined): number[] =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((child) => {
      try {
        return readFileSync(`/proc/${child}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1] === String(pid);
      } catch {
        return false;
      }
    });

/** The daemon that init has started. */
export const daemonOf = (d: TestDaemon): number | undefined =>
  childrenOf(d.process.pid).find((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("\0serve\0"));

/** And waits for the next one. */
export async function killDaemon(d: TestDaemon): Promise<void> {
  const old = daemonOf(d);
  if (old === undefined) throw new Error("no daemon runs");
  process.kill(old, "SIGKILL");
  await eventually(() => {
    const now = daemonOf(d);
    return now !== undefined && now !== old;
  }, "a new daemon");
  await d.ready();
}

/** Until it is over, also by a reset: `once` would throw that. */
export const closed = (socket: Socket): Promise<void> =>
  new Promise((done) => socket.on("error", () => {}).once("close", () => done()));

export const linesOf = async function* (stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + chunk.toString("utf8")).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
};

export const formOf = (parts: { name: string; filename?: string; content: string | Buffer }[]): Ask => {
  const boundary = "----boundary-of-the-test";
  const bytes = parts.flatMap(({ name, filename, content }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"`),
    Buffer.from(filename === undefined ? "" : `; filename="${filename}"\r\nContent-Type: application/octet-stream`),
    Buffer.from("\r\n\r\n"),
    Buffer.from(content),
    Buffer.from("\r\n"),
  ]);
  const body = Buffer.concat([...bytes, Buffer.from(`--${boundary}--\r\n`)]);
  return { headers: { "content-type": `multipart/form-data; boundary=${boundary}` }, body };
};

function send(
  socketPath: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: unknown,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const raw = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
    const payload = raw ? (body as string | Buffer | undefined) : JSON.stringify(body);
    const length = payload === undefined ? {} : { "content-length": String(Buffer.byteLength(payload)) };
    const type = raw ? {} : { "content-type": "application/json" };
    const request = httpRequest({
      socketPath,
      method,
      path,
      headers: { ...type, ...length, ...headers },
      agent: false,
    });
    request.once("response", resolve);
    request.once("error", reject);
    request.end(payload);
  });
}

async function throughPortDoor(path: string, port: number): Promise<{ line: string; socket: Socket }> {
  const socket = connect(path);
  await once(socket, "connect");
  socket.write(`PORT ${port}\n`);
  let received = Buffer.alloc(0);
  while (!received.includes(0x0a)) received = Buffer.concat([received, (await once(socket, "data"))[0] as Buffer]);
  socket.pause();
  const end = received.indexOf(0x0a) + 1;
  if (received.byteLength > end) socket.unshift(received.subarray(end));
  return { line: received.toString("utf8", 0, end), socket };
}

/** Everything before the descriptor that is to be the ready one. */
const stdioUntil = (fd: number): ("ignore" | "inherit")[] =>
  Array.from({ length: fd }, (_, i) => (i === 1 || i === 2 ? "inherit" : "ignore"));

async function readiness(child: ChildProcess, fd: number): Promise<void> {
  const stream = child.stdio[fd as 3];
  if (!stream || !("on" in stream)) throw new Error("the daemon has no ready descriptor");
  await new Promise<void>((resolve, reject) => {
    stream.once("data", () => resolve());
    child.once("exit", (code, signal) => reject(new Error(`sandboxd ended before it was ready: ${code ?? signal}`)));
    child.once("error", reject);
  });
}

async function stop(daemon: TestDaemon): Promise<void> {
  if (daemon.process.exitCode === null && daemon.process.signalCode === null) {
    const running = await daemon.ask("GET", "/process").catch(() => null);
    for (const { pid, status } of (running?.json ?? []) as { pid: string; status: string }[]) {
      if (status === "running") await daemon.ask("DELETE", `/process/${pid}/kill`).catch(() => null);
    }
    const ended = once(daemon.process, "exit");
    daemon.process.kill("SIGTERM");
    const timer = setTimeout(() => daemon.process.kill("SIGKILL"), 2000);
    await ended;
    clearTimeout(timer);
  }
  daemon.process.stdio[(daemon.config.readyFd ?? 3) as 3]?.destroy();
  rmSync(daemon.folder, { recursive: true, force: true, maxRetries: 10 });
}
