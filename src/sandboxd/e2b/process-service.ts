/** `process.Process` of E2B: commands and terminals, their output as a stream, their input and their end. */
import { existsSync } from "node:fs";
import { pathFromBody, toText } from "../files/byte-path.ts";
import { ApiError } from "../http/api-error.ts";
import { envOf } from "../process/exec.ts";
import type { ManagedProcess } from "../process/managed-process.ts";
import { follow } from "../process/output.ts";
import {
  isMessage,
  type Message,
  type Method,
  messageOf,
  type Rpc,
  RpcError,
  type Send,
  serviceOf,
  textOf,
} from "./connect.ts";
import { userOfCredentials } from "./named-user.ts";

/** E2B's clients always ask for this shell; images without it have another. */
const BASH = "/bin/bash";
const SH = "/bin/sh";

function start(rpc: Rpc): ManagedProcess {
  const { call, message, timeoutMs } = rpc;
  const { environment, processes } = call.daemon;
  const config = messageOf(message, "process");
  const asked = textOf(config, "cmd");
  if (asked === "") throw new ApiError(400, '"process.cmd" is required.');
  const args = config.args ?? [];
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string"))
    throw new ApiError(400, '"process.args" must be a list of texts.');
  const { user, env, base } = userOfCredentials(call);
  const cwd = textOf(config, "cwd");
  const tag = textOf(message, "tag");
  const argv = [asked === BASH && !existsSync(BASH) ? SH : asked, ...args];
  return processes.start({
    command: argv.join(" "),
    argv,
    ...(user ? { user } : {}),
    ...(tag === "" ? {} : { name: tag }),
    workingDir: cwd === "" ? base.workDir : toText(pathFromBody(cwd, base)),
    env: { ...env, ...envOf(config.envs) },
    restartOnFailure: false,
    maxRestarts: 0,
    // A command of E2B runs on while nobody listens, so the sandbox stays awake for it.
    keepAlive: !environment.variable("BL_DISABLE_KEEPALIVE"),
    lifetimeMs: timeoutMs,
    timeoutS: timeoutMs === null ? 0 : timeoutMs / 1000,
    stdin: message.stdin === true,
  });
}

/** Tells the process id, everything that the process writes, and its end. */
async function tell(process: ManagedProcess, rpc: Rpc, send: Send, from: "start" | "now"): Promise<void> {
  const { signal } = rpc.call;
  let saidAtMs = performance.now();
  const say = (event: Message): Promise<boolean> => {
    saidAtMs = performance.now();
    return send({ event });
  };
  if (!(await say({ start: { pid: process.record.pid } }))) return;
  for await (const output of follow(process, signal, from)) {
    if (output === null) {
      if (performance.now() - saidAtMs >= rpc.keepaliveMs && !(await say({ keepalive: {} }))) return;
      continue;
    }
    const data = { [output.stream]: Buffer.from(output.bytes).toString("base64") };
    if (!(await say({ data }))) return;
  }
  if (process.running) return; // the client has left
  const { deadlineMs, completedAtMs, status } = process.record;
  if (status === "killed" && deadlineMs !== null && (completedAtMs ?? 0) >= deadlineMs)
    throw new RpcError("deadline_exceeded", "The time of the command is over, and it was killed.");
  await say({ end: endOf(process) });
}

function endOf({ record: { exitCode, status } }: ManagedProcess): Message {
  const isExit = exitCode >= 0;
  const word = isExit ? `exit status ${exitCode}` : `signal: ${status === "stopped" ? "terminated" : "killed"}`;
  return { exitCode, exited: isExit, status: word, ...(exitCode === 0 ? {} : { error: word }) };
}

/** The running process that a message selects, by its process id or its tag. */
function selected({ call, message }: Rpc): ManagedProcess {
  const { pid, tag } = messageOf(message, "process");
  const identifier = pid === undefined ? String(tag ?? "") : String(pid);
  const found = call.daemon.processes.find(identifier);
  if (!found.running) throw new ApiError(404, `The process ${identifier} is not running.`);
  return found;
}

function list({ call }: Rpc): Message {
  const running = call.daemon.processes.list().filter((process) => process.running);
  return {
    processes: running.map(({ record }) => {
      const [cmd = "", ...args] = record.argv ?? [...call.daemon.environment.shell, record.command];
      const config = { cmd, args, envs: record.env, cwd: record.workingDir };
      return { config, pid: record.pid, tag: record.name };
    }),
  };
}

async function sendInput(rpc: Rpc): Promise<Message> {
  const { stdin } = messageOf(rpc.message, "input");
  if (typeof stdin !== "string") throw new ApiError(400, '"input.stdin" is required: this process has no terminal.');
  await inputOf(rpc).write(Buffer.from(stdin, "base64"));
  return {};
}

async function closeStdin(rpc: Rpc): Promise<Message> {
  await inputOf(rpc).end();
  return {};
}

function inputOf(rpc: Rpc) {
  const { stdin, record } = selected(rpc);
  if (!stdin) throw new ApiError(400, `The process ${record.pid} has no standard input: start it with stdin.`);
  return stdin;
}

const SIGNALS: Record<string, "SIGTERM" | "SIGKILL"> = {
  SIGNAL_SIGTERM: "SIGTERM",
  15: "SIGTERM",
  SIGNAL_SIGKILL: "SIGKILL",
  9: "SIGKILL",
};

function sendSignal(rpc: Rpc): Message {
  const signal = SIGNALS[String(rpc.message.signal)];
  if (!signal) throw new ApiError(400, "The signals are SIGNAL_SIGTERM and SIGNAL_SIGKILL.");
  selected(rpc).signal(signal);
  return {};
}

const METHODS: Record<string, Method> = {
  List: { unary: list },
  Start: {
    stream(rpc, send) {
      if (isMessage(rpc.message.pty)) throw new RpcError("unimplemented", "Terminals are not supported yet.");
      return tell(start(rpc), rpc, send, "start");
    },
  },
  Connect: { stream: (rpc, send) => tell(selected(rpc), rpc, send, "now") },
  SendInput: { unary: sendInput },
  CloseStdin: { unary: closeStdin },
  SendSignal: { unary: sendSignal },
};

export const processService = serviceOf(METHODS);
