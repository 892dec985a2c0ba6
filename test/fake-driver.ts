/**
 * A driver without isolation for the tests of other rooms: workloads are directories, their command is a plain child
 * process, their sockets speak the real protocols. Ports inside are ports of the test machine's loopback.
 * The machine outlives its drivers, so a test can "restart the server" by making a second driver of the same machine.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "../src/contract/errors.ts";
import { chooseGrade } from "../src/contract/isolation.ts";
import { SANDBOX_FILES } from "../src/contract/sandbox-wire.ts";
import type { Capabilities, CapabilityName } from "../src/node/capabilities/capabilities.ts";
import type { Image } from "../src/node/capabilities/images.ts";
import type { Snapshot } from "../src/node/capabilities/snapshots.ts";
import type { Volume, VolumeSpec } from "../src/node/capabilities/volumes.ts";
import type { CallOptions } from "../src/node/dial/endpoint.ts";
import type { Driver, OnStop, Probe } from "../src/node/driver.ts";
import { belowUse } from "../src/node/drivers/common/below-use.ts";
import type { Exec, Mount, Observed, WorkloadSpec } from "../src/node/workload.ts";
import { unpackHere } from "./unpack-here.ts";

export interface FakeOptions {
  node?: string;
  /** Names that exist besides `fake/base-image:latest`. */
  images?: string[];
  /** Limits that the machine holds; all of them unless told. */
  limits?: Probe["limits"];
  /** Capabilities that its driver lacks. */
  without?: readonly CapabilityName[];
  /** A text makes the create of that workload fail with it. */
  failCreate?: (spec: WorkloadSpec) => string | undefined;
  /** A destroy begins when this promise is fulfilled. */
  beforeDestroy?: () => Promise<void>;
  /** Megabytes of memory that a workload holds; 1 unless told. */
  usedMb?: (uid: string) => number;
  /** Answers on the API socket; without it every request is answered with `{ uid, method, url }`. */
  api?: (uid: string) => RequestListener;
  /** Where a port inside a workload is on the test machine; without it, the same number. */
  portOf?: (uid: string, port: number) => number;
}

interface FakeWorkload {
  spec: WorkloadSpec;
  observed: Observed;
  root: string;
  child?: ChildProcess;
  /** When its command ends by itself. */
  end?: NodeJS.Timeout;
  output: { stdout: Buffer; stderr: Buffer };
  servers: Server[];
  ended: Promise<void>;
}

export class FakeMachine {
  #dir: string | null = null;
  readonly options: FakeOptions;
  readonly workloads = new Map<string, FakeWorkload>();
  readonly volumes = new Map<string, Volume>();
  readonly snapshots = new Map<string, Snapshot>();
  readonly images = new Map<string, Image>();

  constructor(options: FakeOptions = {}) {
    this.options = options;
    for (const name of ["fake/base-image:latest", ...(options.images ?? [])]) this.addImage(name);
  }

  addImage(name: string): Image {
    const image: Image = {
      name,
      digest: `sha256:${Buffer.from(name).toString("hex").padEnd(64, "0").slice(0, 64)}`,
      sizeBytes: 0,
      env: {},
      workDir: "/",
      argv: [],
      createdAt: new Date().toISOString(),
    };
    this.images.set(name, image);
    return image;
  }

  /** Where the workload's file system is on the test machine. */
  rootOf(uid: string): string {
    return known(this.workloads, uid, "workload").root;
  }

  /** Made for the first workload: most tests have none. */
  get dir(): string {
    this.#dir ??= mkdtempSync(join(tmpdir(), "fake-"));
    return this.#dir;
  }

  async dispose(): Promise<void> {
    for (const uid of [...this.workloads.keys()]) await fakeDriver(this).destroy(uid);
    if (this.#dir) rmSync(this.#dir, { recursive: true, force: true, maxRetries: 10 });
  }
}

export function fakeDriver(machine: FakeMachine): Driver {
  const node = machine.options.node ?? "fake-node";
  const { workloads, options } = machine;
  const workload = (uid: string): FakeWorkload => known(workloads, uid, "workload");
  const capabilities = fakeCapabilities(machine);

  return {
    name: "fake",
    node,
    capability: async (name) => (options.without?.includes(name) ? null : (capabilities[name] ?? null)),
    probe: async () => ({
      grade: "none",
      grades: ["none"],
      missing: ["This driver is for tests."],
      seccomp: false,
      limits: options.limits ?? ["memory", "cpu", "pids"],
      freezer: options.without?.includes("freezing") ? "none" : "signal",
      outbound: "none",
      volumes: "unsized",
      roots: "unsized",
    }),
    async create(spec, { signal } = {}) {
      const there = workloads.get(spec.uid);
      if (there && !isAgain(there)) return { ...there.observed };
      signal?.throwIfAborted();
      chooseGrade(["none"], [spec.isolation]);
      return startWorkload(machine, node, spec, there?.root);
    },
    observe: async (uid) => {
      const found = workloads.get(uid);
      return found ? { ...found.observed } : null;
    },
    list: async () => [...workloads.values()].map(({ observed }) => ({ ...observed })),
    waitExit: (uid, options) => waitExit(machine, uid, options),
    prolong: async (uid, endsAtMs) => {
      const found = workloads.get(uid);
      if (found?.observed.state === "running") endAt(found, endsAtMs);
    },
    stats: async (uid) => {
      workload(uid);
      return { memoryBytes: 1024 * 1024, cpuMs: 1, pids: 1 };
    },
    readOutput: async (uid, stream, offset, bytesMax) => {
      const all = workload(uid).output[stream];
      return { bytes: all.subarray(offset, offset + bytesMax), size: all.length };
    },
    destroy: async (uid, { ended, graceMs, keepFiles } = {}) => {
      await options.beforeDestroy?.();
      const found = workloads.get(uid);
      if (!found) return;
      if (graceMs !== undefined && found.child?.kill("SIGTERM"))
        await Promise.race([found.ended, delay(graceMs, undefined, { ref: false })]);
      killAll(found);
      // What it started may have left its group, and still hold its output.
      for (const stream of [found.child?.stdout, found.child?.stderr]) stream?.destroy();
      await found.ended;
      await ended?.();
      for (const server of found.servers.splice(0)) server.close();
      if (keepFiles && !found.spec.exec) {
        const isEnded = found.observed.state === "exited";
        found.observed = { ...found.observed, state: "exited", ...(isEnded ? {} : { endedBy: "platform" }) };
        return;
      }
      workloads.delete(uid);
      rmSync(dirname(found.root), { recursive: true, force: true });
    },
    stop: async (onStop: OnStop = "keep") => {
      if (onStop === "freeze") for (const found of workloads.values()) setFrozen(found, true);
      if (onStop !== "kill" && onStop !== "end") return;
      for (const uid of [...workloads.keys()]) await fakeDriver(machine).destroy(uid, { keepFiles: onStop === "end" });
    },
  };
}

/** No images are built and no volumes copied: there are no file systems to do it with. */
function fakeCapabilities(machine: FakeMachine): Partial<Capabilities> {
  const { volumes, snapshots } = machine;
  const workload = (uid: string): FakeWorkload => known(machine.workloads, uid, "workload");
  return {
    freezing: {
      freeze: async (uid) => setFrozen(workload(uid), true),
      thaw: async (uid) => setFrozen(workload(uid), false),
    },
    resizing: {
      resize: async (uid, limits) => {
        const { observed } = workload(uid);
        if (observed.state === "exited") throw new PlatformError("conflict", "The workload has ended.");
        const usedMb = machine.options.usedMb?.(uid) ?? 1;
        if (limits.memoryMb < usedMb) throw belowUse(limits, usedMb * 1024 * 1024);
        observed.limits = limits;
        return { ...observed };
      },
    },
    hotMounts: {
      mount: async (uid, mount) => attach(machine, workload(uid), mount),
      unmount: async (uid, path) => detach(workload(uid), path),
    },
    snapshots: {
      async take(uid, id) {
        const { root, spec } = workload(uid);
        const snapshot = { id, image: spec.image, sizeBytes: 0, createdAt: new Date().toISOString() };
        cpSync(root, join(machine.dir, "snapshots", id), { recursive: true });
        snapshots.set(id, snapshot);
        return snapshot;
      },
      remove: async (id) => {
        snapshots.delete(id);
        rmSync(join(machine.dir, "snapshots", id), { recursive: true, force: true });
      },
      list: async () => [...snapshots.values()],
    },
    volumes: {
      create: async (spec) => createVolume(machine, spec),
      observe: async (id) => volumes.get(id) ?? null,
      destroy: async (id) => {
        if (mountedSomewhere(machine, id)) throw new PlatformError("conflict", `The volume ${id} is in use.`);
        volumes.delete(id);
        rmSync(join(machine.dir, "volumes", id), { recursive: true, force: true });
      },
    },
    drives: {
      create: async (id, { from } = {}) => {
        const dir = join(machine.dir, "drives", id);
        if (existsSync(dir)) return;
        mkdirSync(dir, { recursive: true });
        if (from) cpSync(from, dir, { recursive: true });
      },
      bytes: async (id) => {
        const dir = join(machine.dir, "drives", id);
        if (!existsSync(dir)) return null;
        const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
        return files.reduce((sum, file) => sum + statSync(join(file.parentPath, file.name)).size, 0);
      },
      folders: async (id) => {
        const work = join(machine.dir, "drives-work", id);
        mkdirSync(work, { recursive: true });
        return { files: join(machine.dir, "drives", id), work };
      },
      destroy: async (id) => rmSync(join(machine.dir, "drives", id), { recursive: true, force: true }),
    },
    images: {
      load: async (tarPath, name) => {
        if (!existsSync(tarPath)) throw new PlatformError("bad_request", "The archive cannot be read.");
        return machine.addImage(name);
      },
      find: async (name) => machine.images.get(name) ?? null,
      bytes: async (name) => machine.images.get(name)?.sizeBytes ?? null,
      list: async () => [...machine.images.values()],
      remove: async (name) => machine.images.delete(name),
    },
    unpacking: {
      unpack: async (archive, target, limits) => unpackHere({ work: { kind: "files", limits }, archive, target }),
    },
  };
}

/** A sandbox that has ended and starts again on its files. */
const isAgain = ({ spec, observed }: FakeWorkload): boolean => !spec.exec && observed.state === "exited";

async function startWorkload(machine: FakeMachine, node: string, spec: WorkloadSpec, kept?: string): Promise<Observed> {
  const failure = machine.options.failCreate?.(spec);
  if (failure) throw new PlatformError("unavailable", failure);
  const image = machine.images.get(spec.image);
  if (!image) throw new PlatformError("bad_request", `There is no image ${spec.image}.`);
  if (!kept && spec.snapshot && !machine.snapshots.has(spec.snapshot)) {
    throw new PlatformError("bad_request", `There is no snapshot ${spec.snapshot}.`);
  }
  const dir = kept ? dirname(kept) : mkdtempSync(join(machine.dir, "w-"));
  const root = join(dir, "root");
  const run = join(dir, "run");
  rmSync(run, { recursive: true, force: true });
  mkdirSync(run);
  if (kept) for (const { path } of machine.workloads.get(spec.uid)?.observed.mounts ?? []) unlinkSync(join(root, path));
  else if (spec.snapshot) cpSync(join(machine.dir, "snapshots", spec.snapshot), root, { recursive: true });
  else mkdirSync(root);
  const found: FakeWorkload = {
    spec,
    root,
    output: { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) },
    servers: [],
    ended: Promise.resolve(),
    observed: {
      uid: spec.uid,
      node,
      state: "running",
      grade: "none",
      endpoint: { kind: "unix", node, dir: run },
      limits: spec.limits,
      mounts: [],
      createdAt: new Date().toISOString(),
      pooled: false,
      oom: false,
    },
  };
  for (const mount of spec.mounts ?? []) attach(machine, found, mount);
  machine.workloads.set(spec.uid, found);
  await openSockets(machine, found, run);
  // Like a real image's: its own program where none is named.
  if (spec.exec) runCommand(found, { ...spec.exec, argv: spec.exec.argv.length > 0 ? spec.exec.argv : image.argv });
  return { ...found.observed };
}

async function openSockets(machine: FakeMachine, found: FakeWorkload, run: string): Promise<void> {
  const { uid } = found.spec;
  const echo: RequestListener = (request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ uid, method: request.method, url: request.url }));
  };
  const api = createHttpServer(machine.options.api?.(uid) ?? echo).listen(join(run, SANDBOX_FILES.api));
  const control = createHttpServer((request, response) => {
    request.resume();
    response.setHeader("content-type", "application/json");
    const activity = { processesRunning: 0, keepAlive: 0, awake: 0, terminalClients: 0 };
    response.end(JSON.stringify({ ...activity, portConnections: 0, doorConnections: 0 }));
  }).listen(join(run, SANDBOX_FILES.control));
  const ports = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", (line) => {
      const asked = Number(/^PORT (\d+)\n/.exec(line.toString("latin1"))?.[1]);
      const port = machine.options.portOf?.(uid, asked) ?? asked;
      const rest = line.subarray(line.indexOf(0x0a) + 1);
      const inner = connect({ host: "127.0.0.1", port });
      inner.once("error", (error) => socket.end(`ERR ${error.message}\n`));
      inner.once("connect", () => {
        socket.write("OK\n");
        inner.write(rest);
        socket.pipe(inner).pipe(socket);
      });
    });
  }).listen(join(run, SANDBOX_FILES.ports));
  found.servers.push(api, control, ports);
  await Promise.all(found.servers.map((server) => once(server, "listening")));
  for (const server of found.servers) server.unref();
}

function runCommand(found: FakeWorkload, { argv, endsAtMs }: Exec): void {
  if (endsAtMs !== undefined && endsAtMs <= Date.now()) {
    found.observed = { ...found.observed, state: "exited", exitSignal: "SIGKILL" };
    return;
  }
  const [program = "true", ...args] = argv;
  const env = { ...process.env, ...found.spec.env };
  const child = spawn(program, args, { cwd: found.root, env, stdio: "pipe", detached: true });
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].on("data", (chunk: Buffer) => {
      found.output[stream] = Buffer.concat([found.output[stream], chunk]);
    });
  }
  found.child = child;
  if (child.pid !== undefined) found.observed.pid = child.pid;
  if (endsAtMs !== undefined) endAt(found, endsAtMs);
  // Nothing of a real workload outlives its command.
  child.once("exit", () => killAll(found));
  found.ended = new Promise((resolve) => {
    child.once("error", () => {
      found.observed = { ...found.observed, state: "exited", exitCode: 127 };
      resolve();
    });
    child.once("close", (code, signal) => {
      clearTimeout(found.end);
      const { pid: _, ...rest } = found.observed;
      found.observed = { ...rest, state: "exited", ...(signal ? { exitSignal: signal } : { exitCode: code ?? 0 }) };
      resolve();
    });
  });
}

function endAt(found: FakeWorkload, endsAtMs: number): void {
  clearTimeout(found.end);
  found.end = setTimeout(() => killAll(found), Math.max(endsAtMs - Date.now(), 0)).unref();
}

/** The command's group: its children too. */
function killAll({ child }: FakeWorkload): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // all of it has ended
  }
}

async function waitExit(machine: FakeMachine, uid: string, { signal }: CallOptions = {}): Promise<Observed | null> {
  const found = machine.workloads.get(uid);
  if (!found) return null;
  const aborted = new Promise<never>((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  await Promise.race([
    found.child || found.observed.state === "exited" ? found.ended : new Promise<void>(() => {}),
    aborted,
  ]);
  return machine.workloads.has(uid) ? { ...found.observed } : null;
}

function setFrozen(found: FakeWorkload, frozen: boolean): Observed {
  if (found.observed.state === "exited") throw new PlatformError("conflict", "The workload has ended.");
  found.child?.kill(frozen ? "SIGSTOP" : "SIGCONT");
  found.observed.state = frozen ? "frozen" : "running";
  return { ...found.observed };
}

function attach(machine: FakeMachine, found: FakeWorkload, mount: Mount): void {
  const { source } = mount;
  const base =
    "volume" in source
      ? join(machine.dir, "volumes", source.volume)
      : join(machine.dir, "drives", source.drive, source.path ?? "/");
  if (!existsSync(base)) throw new PlatformError("bad_request", "What should be mounted does not exist.");
  if ("volume" in source && mountedSomewhere(machine, source.volume, found.spec.uid)) {
    throw new PlatformError("conflict", `The volume ${source.volume} is in use.`);
  }
  const same = found.observed.mounts.find(({ path }) => path === mount.path);
  if (same && JSON.stringify(same.source) !== JSON.stringify(source)) {
    throw new PlatformError("conflict", `Something else is mounted at ${mount.path}.`);
  }
  if (same) return;
  const at = join(found.root, mount.path);
  mkdirSync(dirname(at), { recursive: true });
  symlinkSync(base, at);
  found.observed.mounts = [...found.observed.mounts, mount];
}

function detach(found: FakeWorkload, path: string): boolean {
  if (!found.observed.mounts.some((mount) => mount.path === path)) return false;
  unlinkSync(join(found.root, path));
  found.observed.mounts = found.observed.mounts.filter((mount) => mount.path !== path);
  return true;
}

const mountedSomewhere = (machine: FakeMachine, volume: string, except?: string): boolean =>
  [...machine.workloads.values()].some(
    ({ spec, observed }) =>
      spec.uid !== except && observed.mounts.some(({ source }) => "volume" in source && source.volume === volume),
  );

function createVolume(machine: FakeMachine, { id, sizeMb, from }: VolumeSpec): Volume {
  const there = machine.volumes.get(id);
  if (there) return there;
  const dir = join(machine.dir, "volumes", id);
  mkdirSync(dir, { recursive: true });
  if (from) cpSync(from, dir, { recursive: true });
  const volume = { id, sizeMb, usedBytes: statSync(dir).size, sized: false };
  machine.volumes.set(id, volume);
  return volume;
}

function known<T>(map: Map<string, T>, key: string, what: string): T {
  const value = map.get(key);
  if (value === undefined) throw new PlatformError("not_found", `There is no ${what} ${key}.`);
  return value;
}
