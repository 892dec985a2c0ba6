/**
 * The daemon: three sockets, the doors, and the state that their handlers share. init starts the daemon; it may be
 * killed at any moment, and a new one can start over the same state folder.
 */

import { accessSync, chmodSync, closeSync, constants, mkdirSync, rmSync, writeSync } from "node:fs";
import type { Server } from "node:net";
import { dirname, join } from "node:path";
import { GATE_ADDRESS_VARIABLE, type SandboxdConfig } from "../contract/sandbox-wire.ts";
import { parseListen } from "./config.ts";
import type { Daemon } from "./daemon-context.ts";
import type { UserFiles } from "./files/user/user-files.ts";
import { createApiServer } from "./http/server.ts";
import { DAEMON_READY_SIGNAL, INIT_PID_VARIABLE, READY_VARIABLE } from "./init/protocol.ts";
import { OnDemand } from "./network/on-demand.ts";
import { createPlatformDoor } from "./network/platform-door.ts";
import { createPortDoor, type Dial } from "./network/port-door.ts";
import { Environment } from "./process/environment.ts";
import { LogMirror } from "./process/log-mirror.ts";
import { ProcessTable } from "./process/table.ts";
import { AwakeCounter } from "./system/awake-counter.ts";
import { createControlServer } from "./system/control-api.ts";
import { takeOver } from "./system/copied.ts";
import { IdleTrim } from "./system/idle-trim.ts";
import { type Door, sleepBehind } from "./system/sleep.ts";
import { noteArrival } from "./system/upgrade.ts";

const DEFAULT_LOG_DIR = "/var/log/sandbox-api";

/** `readAgain`: the configuration as it is now, which a copy of a workload needs. */
export async function startDaemon(
  config: SandboxdConfig,
  startedAtMs: number,
  readAgain: () => SandboxdConfig,
): Promise<void> {
  process.umask(0o022);
  mkdirSync(config.stateDir, { recursive: true, mode: 0o700 });
  const environment = new Environment(config, process.env);
  const processes = new ProcessTable({
    environment,
    stateDir: config.stateDir,
    logDir: () => writableLogDir(config, environment),
    mirror: config.processLogs ? new LogMirror(config.processLogs) : null,
    extraLogs: [config.exec?.stdoutFile, config.exec?.stderrFile].filter((file) => file !== undefined),
  });
  const counters = { terminalClients: 0, portConnections: 0, doorConnections: 0 };
  const trim = new IdleTrim(() => environment.isOwned);
  const awake = config.awakeFifo ? AwakeCounter.open(config.awakeFifo) : null;
  let loading: Promise<UserFiles> | null = null;
  const daemon: Daemon = {
    config,
    startedAtMs,
    environment,
    processes,
    trim,
    userFiles: () => {
      loading ??= import("./files/user/user-files.ts").then(({ UserFiles }) => new UserFiles(config, environment));
      return loading;
    },
    counters,
    activity: () => {
      const { running, keepAlive } = processes.counts();
      return { ...counters, processesRunning: running, keepAlive, awake: awake?.value ?? 0 };
    },
  };
  const count = (kind: "portConnections" | "doorConnections") => (change: 1 | -1) => {
    counters[kind] += change;
    trim.begin()();
  };
  const onDemand = new OnDemand(environment, processes);
  const dial: Dial = (port) => onDemand.dial(port);
  const ports = createPortDoor(dial, count("portConnections"));
  const doors = (config.doors ?? []).map(({ listen, socket, remote }, index) => {
    const way = () => ({ socket, remote: remote ?? environment.claimedDoor(index) });
    return listening(createPlatformDoor(way, count("doorConnections")), parseListen(listen) ?? {});
  });
  const api = createApiServer(daemon);
  const names = config.names === undefined ? null : parseListen(config.names);
  const sockets: Door[] = [
    { server: ports, path: config.portSocket },
    { server: createControlServer(daemon, api), path: config.controlSocket },
    { server: api, path: config.apiSocket },
  ];
  const { asleepFile } = config;
  let { generation } = config;
  const wake = (): void => {
    generation = takeOver(generation, readAgain, environment);
  };
  if (asleepFile !== undefined) daemon.sleep = () => sleepBehind({ doors: sockets, asleepFile, wake, open: atPath });
  await Promise.all([
    ...doors,
    // Loaded only when configured: few sandboxes need it, and node:dgram costs every other one memory.
    ...(names === null ? [] : [import("./network/own-names.ts").then(({ answerOwnNames }) => answerOwnNames(names))]),
    ...sockets.map(atPath),
  ]);
  // After the sockets that the gate leads to.
  if (config.gate) await openGateOf(config, dial, count("portConnections"));
  noteArrival(daemon);
  tellReady(config.readyFd);
  // The caller that waits for READY has work to do first; use that time to load the handlers most requests need next.
  if (!config.exec) await import("./process/process-api.ts");
}

/** Loaded only when configured: most sandboxes are reached through a folder. */
async function openGateOf(config: SandboxdConfig, dial: Dial, count: (change: 1 | -1) => void): Promise<void> {
  const { gate } = config;
  if (!gate) return;
  const { createGate } = await import("./network/gate.ts");
  const host = process.env[GATE_ADDRESS_VARIABLE];
  await listening(createGate(gate, config, dial, count), { ...(host ? { host } : {}), port: gate.port });
}

/** The log folder, or `logs` in the state folder when that is not writable (read-only image, daemon without root). */
function writableLogDir(config: SandboxdConfig, environment: Environment): string {
  const wanted = config.logDir ?? environment.variable("SANDBOX_LOG_DIR") ?? DEFAULT_LOG_DIR;
  try {
    mkdirSync(wanted, { recursive: true });
    accessSync(wanted, constants.W_OK);
    return wanted;
  } catch {
    const instead = join(config.stateDir, "logs");
    mkdirSync(instead, { recursive: true });
    return instead;
  }
}

/** Listens at a path, after removing the stale socket of an earlier daemon. */
async function atPath({ server, path }: Door): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true });
  await listening(server, { path });
  chmodSync(path, 0o600);
}

function listening(server: Server, where: { path?: string; host?: string; port?: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/**
 * Tells the process that started the sandbox first and init second: init then starts a command that may end the
 * sandbox.
 */
function tellReady(fd: number | undefined): void {
  const init = Number(process.env[INIT_PID_VARIABLE] ?? 0);
  const handedDown = init === 0 || process.env[READY_VARIABLE] !== undefined;
  if (fd !== undefined && handedDown) {
    try {
      writeSync(fd, "READY\n");
    } catch {
      // The reader has closed its end.
    }
    closeSync(fd);
  }
  if (init > 0) process.kill(init, DAEMON_READY_SIGNAL);
}
