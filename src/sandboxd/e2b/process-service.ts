/** `process.Process` of E2B: commands and terminals, their output as a stream, their input and their end. */
import { ApiError } from "../http/api-error.ts";
import type { ManagedProcess } from "../process/managed-process.ts";
import { follow } from "../process/output.ts";
import type { StdinPipe } from "../process/stdin-pipe.ts";
import {
  isMessage,
  type Message,
  type Method,
  messageOf,
  type Rpc,
  RpcError,
  type Send,
  serviceOf,
} from "./connect.ts";
import { endEvent } from "./end-event.ts";
import { planOf } from "./process-plan.ts";
import { allPtys, Pty, ptyOf } from "./pty.ts";

function startCommand(rpc: Rpc): ManagedProcess {
  const { call, message, timeoutMs } = rpc;
  const { environment, processes } = call.daemon;
  const { argv, user, tag, ...plan } = planOf(rpc);
  return processes.start({
    ...plan,
    ...{ command: argv.join(" "), argv },
    ...(user ? { user } : {}),
    ...(tag === "" ? {} : { name: tag }),
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
  const { deadlineMs, completedAtMs, status, exitCode } = process.record;
  if (status === "killed" && deadlineMs !== null && (completedAtMs ?? 0) >= deadlineMs)
    throw new RpcError("deadline_exceeded", "The time of the command is over, and it was killed.");
  await say({ end: endEvent(exitCode, status === "stopped" ? "terminated" : "killed") });
}

/** The running process that a message selects, by its process id or its tag. */
function selected({ call, message }: Rpc): ManagedProcess | Pty {
  const { pid, tag } = messageOf(message, "process");
  const pty = ptyOf(Number(pid));
  if (pty) return pty;
  const identifier = pid === undefined ? String(tag ?? "") : String(pid);
  const found = call.daemon.processes.find(identifier);
  if (!found.running) throw new ApiError(404, `The process ${identifier} is not running.`);
  return found;
}

function list({ call }: Rpc): Message {
  const commands = call.daemon.processes.list().filter((process) => process.running);
  const shown = (argv: readonly string[], envs: Record<string, string>, cwd: string) => {
    const [cmd = "", ...args] = argv;
    return { cmd, args, envs, cwd };
  };
  return {
    processes: [
      ...commands.map(({ record }) => ({
        config: shown(record.argv ?? [...call.daemon.environment.shell, record.command], record.env, record.workingDir),
        pid: record.pid,
        tag: record.name,
      })),
      ...[...allPtys()].map(({ pid, plan }) => ({ config: shown(plan.argv, plan.env, plan.workingDir), pid })),
    ],
  };
}

async function sendInput(rpc: Rpc): Promise<Message> {
  const input = messageOf(rpc.message, "input");
  const process = selected(rpc);
  const given = process instanceof Pty ? input.pty : input.stdin;
  if (typeof given !== "string")
    throw new ApiError(400, `The process takes its input as ${process instanceof Pty ? "pty" : "stdin"}.`);
  const bytes = Buffer.from(given, "base64");
  if (process instanceof Pty) process.input(bytes);
  else await stdinOf(process).write(bytes);
  return {};
}

async function closeStdin(rpc: Rpc): Promise<Message> {
  const process = selected(rpc);
  if (process instanceof Pty) throw new ApiError(400, "A terminal's input is closed with Ctrl-D.");
  await stdinOf(process).end();
  return {};
}

function stdinOf({ stdin, record }: ManagedProcess): StdinPipe {
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
  const process = selected(rpc);
  if (process instanceof Pty) process.kill(signal);
  else process.signal(signal);
  return {};
}

function update(rpc: Rpc): Message {
  const process = selected(rpc);
  if (!(process instanceof Pty)) throw new ApiError(400, "The process has no terminal.");
  process.resize(messageOf(rpc.message, "pty"));
  return {};
}

const METHODS: Record<string, Method> = {
  List: { unary: list },
  Start: {
    stream(rpc, send) {
      const { pty } = rpc.message;
      if (!isMessage(pty)) return tell(startCommand(rpc), rpc, send, "start");
      return new Pty(rpc.call.daemon, planOf(rpc), pty, rpc.timeoutMs).tell(rpc, send);
    },
  },
  Connect: {
    stream(rpc, send) {
      const process = selected(rpc);
      return process instanceof Pty ? process.tell(rpc, send) : tell(process, rpc, send, "now");
    },
  },
  SendInput: { unary: sendInput },
  CloseStdin: { unary: closeStdin },
  SendSignal: { unary: sendSignal },
  Update: { unary: update },
};

export const processService = serviceOf(METHODS);
