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
import { OutputValve } from "./output-valve.ts";
import { Viewer } from "./viewer.ts";

const SESSIONS_MAX = 64;
const REPLAY_BYTES_MAX = 100 * 1024;
const ABANDONED_MS = 10 * 60 * 1000;
/** A program waits this long for clients that take nothing; then it goes on without them. */
const PATIENCE_MS = 3000;
const SIDE_MAX = 1000;
export const COLS_DEFAULT = 80;
export const ROWS_DEFAULT = 24;
const FRAME_BYTES = 32 * 1024;
/** Output within this time after a frame is gathered for the next one. What comes later, as an echo does, is sent at once. */
const FRAME_WAIT_MS = 3;
const RESET = "\u001bc";
const SHELLS = ["/bin/bash", "/usr/bin/bash", "/bin/zsh", "/usr/bin/zsh", "/bin/sh"];

export interface TerminalRequest {
  sessionId: string;
  cols: number;
  rows: number;
  shell: string;
  workingDir: string;
  /** The client acknowledges what it has shown. */
  acknowledges: boolean;
}

const sessions = new Map<string, TerminalSession>();

export function attachTerminal(daemon: Daemon, request: TerminalRequest, client: WebSocketConnection): TerminalSession {
  let session = sessions.get(request.sessionId);
  if (!session) {
    if (sessions.size >= SESSIONS_MAX) throw new ApiError(422, `${SESSIONS_MAX} terminals are open already.`);
    session = new TerminalSession(daemon, request);
    sessions.set(request.sessionId, session);
  }
  session.attach(client, request.acknowledges);
  return session;
}

export class TerminalSession {
  readonly #daemon: Daemon;
  readonly #id: string;
  readonly #viewers = new Map<WebSocketConnection, Viewer>();
  readonly #child: Child;
  readonly #valve: OutputValve;
  #replay: Buffer[] = [];
  #replayBytes = 0;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  #flushTimer: NodeJS.Timeout | null = null;
  #flushedMs = 0;
  #patience: NodeJS.Timeout | null = null;
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
    this.#valve = new OutputValve(this.#child.pid);
  }

  attach(client: WebSocketConnection, acknowledges: boolean): void {
    this.#flush();
    if (this.#abandoned) clearTimeout(this.#abandoned);
    this.#abandoned = null;
    const viewer = new Viewer(client, acknowledges, (each) => this.#hasRoom(each));
    this.#viewers.set(client, viewer);
    this.#daemon.counters.terminalClients += 1;
    if (this.#replayBytes > 0) this.#show(viewer);
    this.#goOn();
  }

  detach(client: WebSocketConnection): void {
    if (!this.#viewers.delete(client)) return;
    this.#daemon.counters.terminalClients -= 1;
    this.#goOn();
    if (this.#viewers.size > 0 || !sessions.has(this.#id)) return;
    this.#abandoned = setTimeout(() => this.#kill(), ABANDONED_MS);
  }

  input(data: string): void {
    this.#child.terminal?.write(data);
  }

  acknowledge(client: WebSocketConnection, chars: number): void {
    this.#viewers.get(client)?.acknowledge(chars);
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
    const isAlone = this.#flushTimer === null && performance.now() - this.#flushedMs > FRAME_WAIT_MS;
    if (isAlone || this.#gatheredBytes >= FRAME_BYTES) this.#flush();
    else this.#flushTimer ??= setTimeout(() => this.#flush(), FRAME_WAIT_MS);
  }

  #flush(): void {
    if (this.#flushTimer) clearTimeout(this.#flushTimer);
    this.#flushTimer = null;
    this.#flushedMs = performance.now();
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
    for (const viewer of this.#viewers.values()) if (!viewer.isBehind) viewer.send(message, data.length);
    this.#balance();
  }

  /**
   * The program writes as fast as the fastest client shows; what slower clients cannot take is left out for them. A
   * client that takes nothing at all, as a browser in the background, does not stop the program.
   */
  #balance(): void {
    const watching = [...this.#viewers.values()].filter(({ isBehind }) => !isBehind);
    const full = watching.filter(({ isFull }) => isFull);
    if (full.length === 0) return;
    if (full.length < watching.length || !this.#valve.shut()) leaveBehind(full);
    else
      this.#patience ??= setTimeout(() => {
        leaveBehind(full);
        this.#goOn();
      }, PATIENCE_MS);
  }

  #hasRoom(viewer: Viewer): void {
    if (viewer.isBehind) {
      viewer.isBehind = false;
      this.#show(viewer);
    }
    this.#goOn();
  }

  #goOn(): void {
    if (this.#patience) clearTimeout(this.#patience);
    this.#patience = null;
    this.#valve.open();
  }

  /** Sends the recent output on a cleared screen. */
  #show(viewer: Viewer): void {
    const data = RESET + Buffer.concat(this.#replay).subarray(-REPLAY_BYTES_MAX).toString("utf8");
    viewer.send(JSON.stringify({ type: "output", data }), data.length);
  }

  #ended(): void {
    sessions.delete(this.#id);
    this.#flush();
    this.#goOn();
    this.#valve.close();
    this.#child.terminal?.close();
    if (this.#abandoned) clearTimeout(this.#abandoned);
    for (const viewer of this.#viewers.values()) viewer.close();
  }

  #kill(): void {
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // The shell is gone; its exit event is on the way.
    }
  }
}

function leaveBehind(viewers: readonly Viewer[]): void {
  for (const viewer of viewers) viewer.isBehind = true;
}

/** Bounds a terminal's width or height to 1..SIDE_MAX. Zero and NaN give the fallback. */
export const side = (value: number, fallback: number): number =>
  Math.min(Math.max(Math.trunc(value) || fallback, 1), SIDE_MAX);

const defaultShell = (): string => SHELLS.find((shell) => statSync(shell, { throwIfNoEntry: false })) ?? "sh";
