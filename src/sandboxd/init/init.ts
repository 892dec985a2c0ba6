/**
 * PID 1 of a sandbox. init starts the daemon and, when configured, one foreground command. It restarts a daemon that
 * dies, reaps every orphan and passes SIGTERM on. init keeps no state that matters: state that must survive the daemon
 * lies in files.
 *
 * Orphans of a dead daemon become children of init, so only init learns how they end. When the daemon had marked an
 * orphan as its own (`running/<pid>`), init leaves the exit code in `exits/<pid>` for the next daemon.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import {
  type ExecConfig,
  type ExecStatus,
  SANDBOXD_RUNTIME_ENV,
  type SandboxdConfig,
} from "../../contract/sandbox-wire.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { type Child, selfArgv, spawn } from "../bun.ts";
import { errnoOf } from "../http/api-error.ts";
import { becomeSubreaper, peekZombie, reap } from "../libc.ts";
import { Environment } from "../process/environment.ts";
import { spawnExpendable } from "../process/expendable.ts";
import { writeLastOutput } from "./last-output.ts";
import {
  DAEMON_READY_SIGNAL,
  END_MOVED_SIGNAL,
  EXIT_FOR_UPGRADE,
  INIT_PID_VARIABLE,
  READY_VARIABLE,
  STATE_FILES,
} from "./protocol.ts";
import { trustInSystem } from "./system-trust.ts";

/** The command starts without waiting longer for a daemon that is not ready by then. */
const DAEMON_READY_MAX_MS = 5_000;

const RESTART = { baseMs: 20, maxMs: 5_000 };
/** A daemon that lived this long was healthy; its next death starts the back-off anew. */
const HEALTHY_MS = 10_000;
/** Time between SIGTERM and SIGKILL unless configured. Long, because an impatient caller can send SIGKILL itself. */
const GRACE_DEFAULT_MS = 60_000;
const ALONE_LOOK_MS = 20;
const NOT_FOUND_CODE = 127;
/** Longest wait before the end time is checked again, since the clock may be set meanwhile. */
const END_LOOK_MAX_MS = 5_000;
/**
 * A pod may start after the end time that it was made with, while its server has prolonged it. The command waits so long
 * for the server's word, and never begins without it.
 */
const LATE_WAIT_MS = 3_000;

export function runInit(config: SandboxdConfig, configFile: string): void {
  trustInSystem();
  const init = new Init(config, configFile);
  process.on("SIGCHLD", () => init.reapOrphans());
  process.on("SIGTERM", () => init.terminate());
  process.on("SIGINT", () => init.terminate());
  process.on(DAEMON_READY_SIGNAL, () => init.daemonReady());
  process.on(END_MOVED_SIGNAL, () => init.endInTime());
  init.start();
}

class Init {
  readonly #config: SandboxdConfig;
  readonly #configFile: string;
  #daemon: Child | null = null;
  #command: Child | null = null;
  #commandWanted = false;
  #commandRestarts = 0;
  #daemonDeaths = 0;
  #stopping = false;
  #endLook: NodeJS.Timeout | undefined;
  #isDaemonReady = false;
  readonly #startedAtMs = Date.now();
  /** Inherited by each daemon until the first one has reported READY on it. */
  #readyFd: number | undefined;

  constructor(config: SandboxdConfig, configFile: string) {
    this.#config = config;
    this.#configFile = configFile;
    this.#readyFd = config.readyFd;
  }

  start(): void {
    // A folder that the cluster made belongs to everybody: other users could put sockets of their own there.
    if (this.#config.gate) chmodSync(dirname(this.#config.apiSocket), 0o755);
    for (const folder of ["running", "exits"]) mkdirSync(join(this.#config.stateDir, folder), { recursive: true });
    becomeSubreaper();
    this.#noteEnd();
    this.endInTime();
    this.#startDaemon();
    if (this.#config.exec) setTimeout(() => this.#startCommandOnce(), DAEMON_READY_MAX_MS).unref();
  }

  /**
   * Exits at the time in `endsAtFile`: the server that wanted the command may be gone, and another may start the same
   * work.
   */
  endInTime(): void {
    const { endsAtFile } = this.#config.exec ?? {};
    if (endsAtFile === undefined) return;
    const leftMs = statSync(endsAtFile).mtimeMs - Date.now();
    const late = this.#mayWait();
    if (leftMs <= 0 && late <= 0) this.#exit(128 + constants.signals.SIGKILL);
    clearTimeout(this.#endLook);
    this.#endLook = setTimeout(() => this.endInTime(), Math.min(leftMs > 0 ? leftMs : late, END_LOOK_MAX_MS));
    if (leftMs > 0 && this.#isDaemonReady) this.#startCommandOnce();
  }

  /** Milliseconds for which a command that has not begun may still be prolonged. */
  #mayWait(): number {
    if (this.#config.exec?.endsAtMs === undefined || this.#commandWanted) return 0;
    return this.#startedAtMs + LATE_WAIT_MS - Date.now();
  }

  #isLate(): boolean {
    const { endsAtFile } = this.#config.exec ?? {};
    return endsAtFile !== undefined && statSync(endsAtFile).mtimeMs <= Date.now();
  }

  /** Makes the file with the end time where the platform could not. */
  #noteEnd(): void {
    const { endsAtFile, endsAtMs } = this.#config.exec ?? {};
    if (endsAtFile === undefined || endsAtMs === undefined || existsSync(endsAtFile)) return;
    writeFileSync(endsAtFile, "");
    utimesSync(endsAtFile, endsAtMs / 1000, endsAtMs / 1000);
  }

  daemonReady(): void {
    if (this.#readyFd !== undefined) closeSync(this.#readyFd);
    this.#readyFd = undefined;
    this.#isDaemonReady = true;
    this.#startCommandOnce();
  }

  #startCommandOnce(): void {
    const { exec } = this.#config;
    if (!exec || this.#commandWanted || this.#stopping || this.#isLate()) return;
    this.#commandWanted = true;
    this.#startCommand(exec);
  }

  /** Reaps every ended child except the daemon and the command, which the runtime reaps and reports to `onExit`. */
  reapOrphans(): void {
    for (let pid = peekZombie(); pid > 0; pid = peekZombie()) {
      // The runtime has not reaped its own child yet; `onExit` calls this method again.
      if (pid === this.#daemon?.pid || pid === this.#command?.pid) return;
      const exit = reap(pid);
      const mark = join(this.#config.stateDir, "running", String(pid));
      if (!exit || !existsSync(mark)) continue;
      const note = join(this.#config.stateDir, "exits", String(pid));
      writeFileSync(`${note}.new`, JSON.stringify(exit));
      renameSync(`${note}.new`, note);
      rmSync(mark, { force: true });
    }
  }

  /** Sends SIGTERM to all processes. Exits when all of them are gone, at the latest after the grace period. */
  terminate(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    const everything = process.pid === 1 ? [-1] : [this.#daemon?.pid, this.#command && -this.#command.pid];
    for (const target of everything) if (target) trySignal(target, "SIGTERM");
    const graceMs = this.#graceMs();
    if (graceMs === 0) this.#exit(128 + constants.signals.SIGKILL);
    setTimeout(() => this.#exit(128 + constants.signals.SIGTERM), graceMs);
    this.#exitWhenAlone();
  }

  /** The platform's word for this end, or the configuration's for every end. */
  #graceMs(): number {
    const { stateDir, graceMs = GRACE_DEFAULT_MS } = this.#config;
    const file = join(stateDir, STATE_FILES.grace);
    const said = existsSync(file) ? Number(readFileSync(file, "utf8")) : Number.NaN;
    return Number.isSafeInteger(said) && said >= 0 ? said : graceMs;
  }

  #startDaemon(): void {
    const startedAtMs = Date.now();
    const readyFd = this.#readyFd;
    const stdio: (number | "ignore" | "inherit")[] = ["ignore", "inherit", "inherit"];
    // The descriptor keeps its number, so the numbers below it are filled with "ignore".
    if (readyFd !== undefined && readyFd > 2) for (let fd = 3; fd <= readyFd; fd += 1) stdio.push("ignore");
    if (readyFd !== undefined && readyFd > 2) stdio[readyFd] = readyFd;
    this.#daemon = spawn([...this.#executable(), "serve", "--config", this.#configFile], {
      stdio,
      env: {
        ...process.env,
        ...SANDBOXD_RUNTIME_ENV,
        [INIT_PID_VARIABLE]: String(process.pid),
        ...(readyFd === undefined ? {} : { [READY_VARIABLE]: "1" }),
      },
      onExit: (_, exitCode) => {
        this.#daemon = null;
        this.reapOrphans();
        if (this.#stopping) return this.#exitWhenAlone();
        const planned = exitCode === EXIT_FOR_UPGRADE;
        this.#daemonDeaths = planned || Date.now() - startedAtMs > HEALTHY_MS ? 0 : this.#daemonDeaths + 1;
        const pauseMs = this.#daemonDeaths === 0 ? 0 : backoffMs(this.#daemonDeaths, RESTART);
        setTimeout(() => this.#stopping || this.#startDaemon(), pauseMs);
      },
    });
  }

  /**
   * The executable to run: the platform's newer one, once the daemon has asked for an upgrade; otherwise this program.
   */
  #executable(): string[] {
    const { stateDir, upgradeFile } = this.#config;
    const chosen =
      upgradeFile !== undefined && existsSync(join(stateDir, STATE_FILES.upgraded)) && existsSync(upgradeFile);
    return chosen ? [upgradeFile] : selfArgv();
  }

  #startCommand(exec: ExecConfig): void {
    const startedAt = new Date().toISOString();
    const base = { startedAt, restarts: this.#commandRestarts };
    const opened: number[] = [];
    const outputTo = (file: string | undefined, inherited: number): number => {
      if (file === undefined) return inherited;
      const fd = openSync(file, "a", 0o644);
      opened.push(fd);
      return fd;
    };
    try {
      const environment = new Environment(this.#config, process.env);
      const { user } = environment;
      const argv = exec.builtin === undefined ? exec.argv : [...selfArgv(), exec.builtin, ...exec.argv];
      const child = spawnExpendable(environment, argv, {
        cwd: exec.cwd ?? environment.workDir,
        env: environment.variables(exec.env),
        stdio: ["ignore", outputTo(exec.stdoutFile, 1), outputTo(exec.stderrFile, 2)],
        detached: true,
        ...(user ? { uid: user.uid, gid: user.gid } : {}),
        onExit: (ended, exitCode) => {
          this.#command = null;
          const { signalCode } = ended;
          const how = signalCode ? { signal: signalCode } : { exitCode: exitCode ?? 0 };
          this.#commandEnded(exec, { ...base, pid: ended.pid, ...how });
        },
      });
      this.#command = child;
      writeStatus(exec, { ...base, state: "running", pid: child.pid });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#commandEnded(exec, { ...base, pid: 0, exitCode: NOT_FOUND_CODE, error: message });
    } finally {
      for (const fd of opened) closeSync(fd);
    }
  }

  #commandEnded(exec: ExecConfig, end: Omit<ExecStatus, "state" | "finishedAt">): void {
    writeStatus(exec, { ...end, state: "exited", finishedAt: new Date().toISOString() });
    this.reapOrphans();
    if (this.#stopping) {
      this.#exitWhenAlone();
      return;
    }
    const { onExit = "exit" } = exec;
    if (onExit === "exit") this.#exit(end.exitCode ?? 128 + signalNumber(end.signal));
    if (onExit === "stay") return;
    this.#commandRestarts += 1;
    const livedMs = Date.now() - Date.parse(end.startedAt);
    const pauseMs = livedMs > HEALTHY_MS ? RESTART.baseMs : backoffMs(this.#commandRestarts, RESTART);
    setTimeout(() => this.#stopping || this.#startCommand(exec), pauseMs);
  }

  /**
   * Exits when both children are gone and, as PID 1, when no other process is left: each may need time after SIGTERM.
   */
  #exitWhenAlone(): void {
    if (!this.#stopping || this.#daemon || this.#command) return;
    const others = process.pid === 1 && readdirSync("/proc").some((entry) => /^\d+$/.test(entry) && entry !== "1");
    // A command that was told to end has not finished its work, however politely it ended.
    if (!others) this.#exit(this.#config.exec ? 128 + constants.signals.SIGTERM : 0);
    setTimeout(() => this.#exitWhenAlone(), ALONE_LOOK_MS);
  }

  /** Kills both children first. The kernel does so only when PID 1 exits; elsewhere they would live on. */
  #exit(code: number): never {
    if (this.#command) trySignal(-this.#command.pid, "SIGKILL");
    if (this.#daemon) trySignal(this.#daemon.pid, "SIGKILL");
    if (this.#config.lastOutput) writeLastOutput(this.#config);
    process.exit(code);
  }
}

/** Replaced atomically, so that a reader never sees half of the status. */
function writeStatus({ statusFile }: ExecConfig, status: ExecStatus): void {
  writeFileSync(`${statusFile}.new`, JSON.stringify(status));
  renameSync(`${statusFile}.new`, statusFile);
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

const signalNumber = (name: string | undefined): number =>
  (name && constants.signals[name as keyof typeof constants.signals]) || 0;
