/** The part of the control socket for a platform that shares no folder with the workload. */
import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { CONTROL, OUTPUT_SIZE_HEADER, type SandboxClaim } from "../../contract/sandbox-wire.ts";
import { mistakeInClaim } from "../config.ts";
import type { Daemon } from "../daemon-context.ts";
import { ApiError, errnoOf } from "../http/api-error.ts";
import { type Call, field, type Handler, integerQuery, readJson } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { END_MOVED_SIGNAL, INIT_PID_VARIABLE, STATE_FILES } from "../init/protocol.ts";
import { saveClaim } from "../process/claim.ts";
import { statsOf } from "./stats.ts";

const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;
const ANSWER_LEAVES_MS = 20;
const QUIET_LOOK_MS = 20;
/** Looks without a process of the workload, one after the other, after which all have ended. */
const QUIET_LOOKS = 5;

/** Null for a path that is none of these. */
export function remoteHandler(method: string, path: string): Handler | null {
  const [plain = ""] = path.split("?");
  if (method === "GET" && plain.startsWith(CONTROL.output)) return sendOutput;
  if (method === "GET" && plain === CONTROL.stats) return ({ res }) => sendJson(res, 200, statsOf());
  if (method === "POST" && plain === CONTROL.endsAt) return moveEnd;
  if (method === "POST" && plain === CONTROL.claim) return takeClaim;
  if (method === "POST" && plain === CONTROL.end) return end;
  if (method === "POST" && plain === CONTROL.halt) return halt;
  if (method === "POST" && plain === CONTROL.freeze) return ({ res }) => hold(res, "SIGSTOP");
  if (method === "POST" && plain === CONTROL.thaw) return ({ res }) => hold(res, "SIGCONT");
  return null;
}

function sendOutput(call: Call): void {
  const { path, res, daemon } = call;
  const [plain = "", query = ""] = path.split("?");
  const asked: Call = { ...call, query: new URLSearchParams(query) };
  const { exec, processLogs } = daemon.config;
  const stream = plain.slice(CONTROL.output.length);
  const files: Record<string, string | undefined> = {
    stdout: exec?.stdoutFile ?? processLogs?.stdout,
    stderr: exec?.stderrFile ?? processLogs?.stderr,
  };
  const offset = Math.max(0, integerQuery(asked, "offset", 0));
  const bytesMax = Math.min(OUTPUT_BYTES_MAX, Math.max(0, integerQuery(asked, "bytes", OUTPUT_BYTES_MAX)));
  const { bytes, size } = readPart(files[stream], offset, bytesMax);
  res.writeHead(200, { "content-type": "application/octet-stream", [OUTPUT_SIZE_HEADER]: String(size) }).end(bytes);
}

/** Empty where nothing was written yet. The workload's root can replace the file: no link is followed, nothing blocks. */
function readPart(path: string | undefined, offset: number, bytesMax: number): { bytes: Buffer; size: number } {
  const empty = { bytes: Buffer.alloc(0), size: 0 };
  if (path === undefined) return empty;
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return empty;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return empty;
    const buffer = Buffer.alloc(Math.max(0, Math.min(bytesMax, stat.size - offset)));
    const read = readSync(fd, buffer, 0, buffer.length, offset);
    return { bytes: buffer.subarray(0, read), size: stat.size };
  } finally {
    closeSync(fd);
  }
}

async function takeClaim(call: Call): Promise<void> {
  const { claimFile } = call.daemon.config;
  const claim = (await readJson(call)) as SandboxClaim;
  const wrong = mistakeInClaim(claim);
  if (wrong) throw new ApiError(422, `claim: ${wrong}`);
  if (claimFile === undefined || !saveClaim(claimFile, claim))
    throw new ApiError(409, "This sandbox has an owner already.");
  sendJson(call.res, 200, {});
}

async function moveEnd(call: Call): Promise<void> {
  const { endsAtFile } = call.daemon.config.exec ?? {};
  const endsAtMs = field(await readJson(call), "endsAtMs", "integer");
  if (endsAtFile === undefined || endsAtMs === undefined) throw new ApiError(409, "This workload has no end time.");
  utimesSync(endsAtFile, endsAtMs / 1000, endsAtMs / 1000);
  onceAnswered(call, END_MOVED_SIGNAL);
  sendJson(call.res, 200, {});
}

async function end(call: Call): Promise<void> {
  const graceMs = field(await readJson(call), "graceMs", "integer") ?? 0;
  noteGrace(call.daemon, Math.max(0, graceMs));
  // Processes that were stopped hear of their end.
  if (initPid() === 1) signalAll("SIGCONT");
  onceAnswered(call, "SIGTERM");
  sendJson(call.res, 200, {});
}

async function halt(call: Call): Promise<void> {
  const graceMs = field(await readJson(call), "graceMs", "integer") ?? 0;
  const untilMs = Date.now() + Math.max(0, graceMs);
  signalAll("SIGCONT");
  if (graceMs > 0) signalAll("SIGTERM");
  while (hasOthers() && Date.now() < untilMs) await pause(QUIET_LOOK_MS);
  // Processes that are started again when they fail are ended again.
  for (let quiet = 0; quiet < QUIET_LOOKS; quiet = hasOthers() ? 0 : quiet + 1) {
    signalAll("SIGKILL");
    await pause(QUIET_LOOK_MS);
  }
  sendJson(call.res, 200, {});
}

function hold(res: Call["res"], signal: "SIGSTOP" | "SIGCONT"): void {
  // Twice: a process that was being made during the first round has missed it.
  for (let round = 0; round < 2; round += 1) signalAll(signal);
  sendJson(res, 200, {});
}

/**
 * To every process but init and this one; only where init is the first process of a namespace of its own, since the
 * signal would reach the whole machine elsewhere.
 */
function signalAll(signal: NodeJS.Signals): void {
  if (initPid() !== 1) throw new ApiError(409, "This daemon shares its processes with a machine.");
  try {
    process.kill(-1, signal);
  } catch (error) {
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

const hasOthers = (): boolean =>
  readdirSync("/proc").some((name) => /^\d+$/.test(name) && name !== "1" && name !== String(process.pid));

function noteGrace({ config }: Daemon, graceMs: number): void {
  if (initPid() === 0) throw new ApiError(409, "No init runs this daemon.");
  writeFileSync(join(config.stateDir, STATE_FILES.grace), String(graceMs));
}

const initPid = (): number => Number(process.env[INIT_PID_VARIABLE] ?? 0);

/** The answer still has to pass through the gate, which may end with init. */
function onceAnswered({ res }: Call, signal: NodeJS.Signals): void {
  const tell = (): void => {
    if (initPid() > 0) process.kill(initPid(), signal);
  };
  res.once("finish", () => setTimeout(tell, ANSWER_LEAVES_MS));
}
