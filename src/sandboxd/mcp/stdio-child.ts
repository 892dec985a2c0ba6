/**
 * An MCP server that speaks on its standard input and output, one JSON message per line, as a child process. What it
 * writes to standard error, and lines on standard output that are no message, are its log.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { RpcId } from "../../lib/mcp/wire.ts";
import { errnoOf } from "../http/api-error.ts";

export interface Message {
  jsonrpc?: "2.0";
  id?: RpcId;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: unknown };
}

/** Largest message. Messages carry files as base64; larger files are not meant for a model. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Most bytes queued for the child; a server that leaves more unread has stopped reading. */
const UNREAD_BYTES_MAX = 4 * MESSAGE_BYTES_MAX;
/** Time between SIGTERM and SIGKILL. */
const GRACE_MS = 3_000;
const NEWLINE = 10;

export interface StdioChildEvents {
  onMessage(message: Message): void;
  /** Called once; no message follows. */
  onExit(how: string): void;
}

export class StdioChild {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #events: StdioChildEvents;
  #line: Buffer[] = [];
  #lineBytes = 0;
  #over = false;

  constructor(argv: readonly string[], events: StdioChildEvents) {
    const [program = "", ...args] = argv;
    this.#events = events;
    // A process group of its own: a shell line may start several processes, and all of them end together.
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
    this.#child.stdin.on("error", () => {}); // the child has ended or is about to; onExit reports that
    this.#child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#child.on("error", (error) => this.#end(`it could not be started: ${error.message}`));
    this.#child.on("exit", (code, signal) => this.#end(signal ? `signal ${signal}` : `exit code ${code}`));
  }

  /** False when the child does not read its input. */
  send(message: Message): boolean {
    if (this.#over || this.#child.stdin.writableLength > UNREAD_BYTES_MAX) return false;
    this.#child.stdin.write(`${JSON.stringify({ ...message, jsonrpc: "2.0" })}\n`);
    return true;
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#child.stdin.end();
    this.#signal("SIGTERM");
    const kill = (): void => {
      clearTimeout(timer);
      this.#signal("SIGKILL");
    };
    const timer = setTimeout(kill, GRACE_MS);
    this.#child.once("exit", kill);
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#line.push(chunk.subarray(start, end));
      this.#take(Buffer.concat(this.#line).toString("utf8").trim());
      this.#line = [];
      this.#lineBytes = 0;
      start = end + 1;
    }
    this.#line.push(chunk.subarray(start));
    this.#lineBytes += chunk.length - start;
    if (this.#lineBytes <= MESSAGE_BYTES_MAX) return;
    this.stop();
    this.#events.onExit(`it sent a message of more than ${MESSAGE_BYTES_MAX} bytes`);
  }

  #take(line: string): void {
    if (line === "" || this.#over) return;
    const message = parsed(line);
    if (message === null) console.error(line);
    else this.#events.onMessage(message);
  }

  #end(how: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#signal("SIGKILL"); // processes that the child left behind in its group
    this.#events.onExit(how);
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch (error) {
      if (errnoOf(error) !== "ESRCH") throw error;
    }
  }
}

function parsed(line: string): Message | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Message) : null;
  } catch {
    return null;
  }
}

export const isRequest = (message: Message): message is Message & { id: string | number; method: string } =>
  typeof message.method === "string" && (typeof message.id === "string" || typeof message.id === "number");

export const isAnswer = (message: Message): boolean =>
  message.method === undefined && (message.result !== undefined || message.error !== undefined);
