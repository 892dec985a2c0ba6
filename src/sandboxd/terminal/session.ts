/**
 * A shell on a pseudo terminal, shared by every client that names its session. The session outlives its clients: a
 * browser tab that comes back sees the screen as it was. It is closed some time after its last client left, or as soon
 * as its shell ends.
 */

import { statSync } from "node:fs";
import type { Child } from "../bun.ts";
import type { Daemon } from "../daemon-context.ts";
import { pathFromBody, toText } from "../files/byte-path.ts";
import { ApiError } from "../http/api-error.ts";
import type { WebSocketConnection } from "../http/websocket.ts";
import { spawnExpendable } from "../process/expendable.ts";

const SESSIONS_MAX = 64;
const REPLAY_BYTES_MAX = 100 * 1024;
const ABANDONED_MS = 10 * 60 * 1000;
/** A client with more unsent bytes gets no output until it has caught up; then the screen is drawn anew. */
const CLIENT_WAITING_BYTES_MAX = 1024 * 1024;
const SIDE_MAX = 1000;
export const COLS_DEFAULT = 80;
export const ROWS_DEFAULT = 24;
const FRAME_BYTES = 32 * 1024;
const FRAME_WAIT_MS = 3;
const RESET = "\u001bc";
const SHELLS = ["/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh", "/bin/sh"];

export interface TerminalRequest {
  sessionId: string;
  cols: number;
  rows: number;
  shell: string;
  workingDir: string;
}

const sessions = new Map<string, TerminalSession>();

export function attachTerminal(daemon: Daemon, request: TerminalRequest, client: WebSocketConnection): TerminalSession {
  let session = sessions.get(request.sessionId);
  if (!session) {
    if (sessions.size >= SESSIONS_MAX) throw new ApiError(422, `${SESSIONS_MAX} terminals are open already.`);
    session = new TerminalSession(daemon, request);
    sessions.set(request.sessionId, session);
  }
  session.attach(client);
  return session;
}

export class TerminalSession {
  readonly #daemon: Daemon;
  readonly #id: string;
  readonly #clients = new Map<WebSocketConnection, { behind: boolean }>();
  readonly #child: Child;
  #replay: Buffer[] = [];
  #replayBytes = 0;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  #flushTimer: NodeJS.Timeout | null = null;
  #decoder = new TextDecoder();
  #abandoned: NodeJS.Timeout | null = null;

  constructor(daemon: Daemon, request: TerminalRequest) {
    this.#daemon = daemon;
    this.#id = request.sessionId;
    const { environment } = daemon;
    const { user } = environment;
    const cwd = request.workingDir
      ? toText(pathFromBody(request.workingDir, environment.pathBase))
      : environment.workDir;
    if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) throw new ApiError(422, `${cwd} is not a directory.`);
    this.#child = spawnExpendable(environment, [request.shell || defaultShell()], {
      cwd,
      env: environment.variables({ TERM: "xterm-256color" }),
      detached: true,
      ...(user ? { uid: user.uid, gid: user.gid } : {}),
      terminal: { cols: request.cols, rows: request.rows, data: (_, chunk) => this.#output(Buffer.from(chunk)) },
      onExit: () => this.#ended(),
    });
  }

  attach(client: WebSocketConnection): void {
    this.#flush();
    if (this.#abandoned) clearTimeout(this.#abandoned);
    this.#abandoned = null;
    this.#clients.set(client, { behind: false });
    this.#daemon.counters.terminalClients += 1;
    if (this.#replayBytes > 0) this.#show(client);
  }

  detach(client: WebSocketConnection): void {
    if (!this.#clients.delete(client)) return;
    this.#daemon.counters.terminalClients -= 1;
    if (this.#clients.size > 0 || !sessions.has(this.#id)) return;
    this.#abandoned = setTimeout(() => this.#kill(), ABANDONED_MS);
  }

  input(data: string): void {
    this.#child.terminal?.write(data);
  }

  resize(cols: number, rows: number): void {
    this.#child.terminal?.resize(side(cols, COLS_DEFAULT), side(rows, ROWS_DEFAULT));
  }

  /**
   * Batches output: the kernel delivers small pieces, and a frame for each would be most of the work of a busy
   * terminal.
   */
  #output(chunk: Buffer): void {
    this.#gathered.push(chunk);
    this.#gatheredBytes += chunk.byteLength;
    if (this.#gatheredBytes >= FRAME_BYTES) this.#flush();
    else this.#flushTimer ??= setTimeout(() => this.#flush(), FRAME_WAIT_MS);
  }

  #flush(): void {
    if (this.#flushTimer) clearTimeout(this.#flushTimer);
    this.#flushTimer = null;
    const chunk = Buffer.concat(this.#gathered);
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#replay.push(chunk);
    this.#replayBytes += chunk.byteLength;
    while (this.#replayBytes - (this.#replay[0]?.byteLength ?? 0) > REPLAY_BYTES_MAX) {
      this.#replayBytes -= this.#replay.shift()?.byteLength ?? 0;
    }
    const data = this.#decoder.decode(chunk, { stream: true });
    if (data === "") return;
    const message = JSON.stringify({ type: "output", data });
    for (const [client, state] of this.#clients) {
      if (state.behind) continue;
      client.send(message);
      if (client.waiting <= CLIENT_WAITING_BYTES_MAX) continue;
      state.behind = true;
      client.onDrain(() => {
        state.behind = false;
        this.#show(client);
      });
    }
  }

  /** Sends the recent output on a cleared screen. */
  #show(client: WebSocketConnection): void {
    const recent = Buffer.concat(this.#replay).subarray(-REPLAY_BYTES_MAX).toString("utf8");
    client.send(JSON.stringify({ type: "output", data: RESET + recent }));
  }

  #ended(): void {
    sessions.delete(this.#id);
    this.#flush();
    this.#child.terminal?.close();
    if (this.#abandoned) clearTimeout(this.#abandoned);
    for (const client of this.#clients.keys()) client.close(1000);
  }

  #kill(): void {
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // The shell is gone; its exit event is on the way.
    }
  }
}

/** Bounds a terminal's width or height to 1..SIDE_MAX. Zero and NaN give the fallback. */
export const side = (value: number, fallback: number): number =>
  Math.min(Math.max(Math.trunc(value) || fallback, 1), SIDE_MAX);

const defaultShell = (): string => SHELLS.find((shell) => statSync(shell, { throwIfNoEntry: false })) ?? "sh";
