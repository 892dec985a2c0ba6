/**
 * Workloads on this Linux machine. All state of the driver lies in files below its data folder, so that a server can be
 * killed at any moment: the next one finds the workloads running and continues with them.
 *
 *   stepper      the executable that makes system calls
 *   bin/         the daemon, visible to every workload
 *   images/      layers, manifests, the base image
 *   workloads/   one folder each: record.json, fs/ (files written), run/ (shared with it), host/ (read-only for it)
 *   snapshots/, volumes/, volume-copies/, drives/, drives-work/
 */

import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import type { Socket } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { PlatformError } from "../../../contract/errors.ts";
import { chooseGrade } from "../../../contract/isolation.ts";
import type { Capabilities, CapabilityName } from "../../capabilities/capabilities.ts";
import type { CallOptions } from "../../dial/endpoint.ts";
import type { DestroyOptions, Driver, OnStop, Probe } from "../../driver.ts";
import { type EgressOptions, type EgressProxy, startEgressProxy } from "../../egress/egress-proxy.ts";
import type { Grade, Observed, Output, Stats, WorkloadSpec } from "../../workload.ts";
import { PROXY_ENV } from "../common/proxy-env.ts";
import { Serial } from "../common/serial.ts";
import { checkSpec } from "../common/spec-check.ts";
import { LocalBuilding } from "./capabilities/building.ts";
import { LocalFreezing } from "./capabilities/freezing.ts";
import { LocalHibernation } from "./capabilities/hibernation.ts";
import { LocalHotMounts } from "./capabilities/hot-mounts.ts";
import { LocalImages } from "./capabilities/images.ts";
import { needsIsolation } from "./capabilities/needs-isolation.ts";
import { LocalResizing } from "./capabilities/resizing.ts";
import { LocalSnapshots } from "./capabilities/snapshots.ts";
import { LocalVolumeCopies } from "./capabilities/volume-copies.ts";
import * as imageStore from "./images/images.ts";
import { type CgroupHost, findCgroups, removeCgroupHost } from "./machine/cgroup.ts";
import { gradesOf, type Machine, openMachine } from "./machine/machine.ts";
import { type Nat, openNat } from "./network/nat.ts";
import { sweepDrives } from "./storage/drives.ts";
import { unmountLeftovers } from "./storage/loop-image.ts";
import { RemoteDrives } from "./storage/remote-drives.ts";
import { RootDisks } from "./storage/root-disks.ts";
import { Storage } from "./storage/storage.ts";
import { treeCopier } from "./storage/tree-copy.ts";
import { treeUnpacker, type UnpackTree } from "./storage/tree-unpack.ts";
import { openVolumeStore, type VolumeStore } from "./storage/volumes.ts";
import { openCage } from "./unpack/cage.ts";
import { Fleet } from "./workload/fleet.ts";
import type { WorkloadContext } from "./workload/workload.ts";

export interface LocalDriverOptions {
  /** Folder that only this driver uses. */
  dataDir: string;
  /** The part before the slash in names of the base image. */
  brand: string;
  /** The daemon's executable. */
  sandboxd: string;
  /** A Node executable to put into the base image. */
  nodeBinary?: string;
  /** Name of this machine. Default: its host name. */
  node?: string;
  /** Prepared workloads per kind of workload in use; 0 (default) turns the pool off. */
  poolSize?: number;
  /** Run workloads as plain processes where the machine can give no isolation. */
  allowUnisolated?: boolean;
  /** Use only this isolation grade. Default: the strongest that works. */
  grade?: Grade;
  /** The weakest grade that a workload may have. Default: the usual one of the machine. */
  isolation?: Grade | undefined;
  /** Path of runsc, for grade vm-like. Default: where programs usually are. */
  runsc?: string | undefined;
  /** Handles a connection that a workload made to the platform. Default: hang up. */
  onPlatform?: (uid: string, socket: Socket) => void;
  /** Rules and metering of outgoing traffic. */
  egress?: EgressOptions;
  /** Workloads with a network of their own get an IPv6 address, for egress gateways that have one. Default false. */
  ipv6?: boolean;
  /** Connections that a workload with a network of its own may have open at once. */
  connectionsMax?: number;
  /** "proxy" does not touch the machine's network, even where each workload could have its own. */
  outbound?: "auto" | "proxy";
  /** MB that the roots of workloads leave free on the disk of `dataDir`. Default KEEP_FREE_MB. */
  keepFreeMb?: number;
  /** Socket through which mounts of drives of other nodes reach these nodes. Default: there are none. */
  driveSocket?: string | undefined;
  /** Called for failures in the background, which no caller sees. */
  onWarning?: (message: string, fields: Record<string, unknown>) => void;
}

const KEEP_FREE_MB = 128;

interface Parts {
  options: LocalDriverOptions;
  machine: Machine;
  images: imageStore.ImageStore;
  base: imageStore.ResolvedImage;
  egress: EgressProxy;
  nat: Nat | null;
  volumes: VolumeStore;
}

export async function openLocalDriver(options: LocalDriverOptions): Promise<LocalDriver> {
  const dir = options.dataDir;
  for (const name of ["workloads", "drives", "snapshots"]) mkdirSync(join(dir, name), { recursive: true });
  if (process.getuid?.() === 0) await unmountLeftovers(dir);
  // A workload's root owns its files as root on disk and may set set-user-id bits: no other user may reach them.
  chmodSync(dir, 0o700);
  const name = `${options.brand}-${createHash("sha256").update(dir).digest("hex").slice(0, 8)}`;
  const cgroups = findCgroups(name);
  const egress = startEgressProxy(options.egress);
  const { nat, missing: noNat } =
    options.outbound === "proxy"
      ? { nat: null, missing: "" }
      : await openNat({
          name: `b${name.slice(-5)}`,
          guarding: guarding(egress, options),
          ipv6: options.ipv6 === true,
          connectionsMax: options.connectionsMax,
        });
  try {
    return await openOn({ options, cgroups, egress, nat, noNat });
  } catch (error) {
    // Workloads that a server left running still need the network.
    await nat?.stop(readdirSync(join(dir, "workloads")).length === 0);
    removeCgroupHost(cgroups);
    throw error;
  }
}

/** Without a source of rules no workload has any. */
const guarding = (egress: EgressProxy, { egress: { rules, neighbours } = {}, onWarning }: LocalDriverOptions) =>
  rules && {
    rules,
    neighbours,
    serve: egress.serveTransparent,
    onError: (error: unknown) => onWarning?.("The outbound rules of a workload could not be set.", { error }),
  };

interface Ground {
  options: LocalDriverOptions;
  cgroups: CgroupHost;
  egress: EgressProxy;
  nat: Nat | null;
  /** Why there is no NAT. */
  noNat: string;
}

async function openOn({ options, cgroups, egress, nat, noNat }: Ground): Promise<LocalDriver> {
  const { dataDir: dir, brand, nodeBinary } = options;
  const images = imageStore.openImageStore({
    dir: join(dir, "images"),
    brand,
    resolvConf: nat?.resolvConf ?? "",
    ...(nodeBinary ? { nodeBinary } : {}),
  });
  const base = imageStore.resolveImage(images, "base-image");
  if (!base) throw new Error("the image store does not know its base image");
  const { grade: only, runsc } = options;
  const machine = await openMachine(dir, options.sandboxd, base, cgroups, { only, runsc });
  if (machine.grade === "none" && !options.allowUnisolated) {
    await machine.spawner.stop();
    throw new PlatformError("unavailable", `This machine cannot isolate workloads. ${machine.missing.join(" ")}`);
  }
  try {
    chooseGrade(gradesOf(machine), [options.isolation]);
  } catch (error) {
    await machine.spawner.stop();
    throw error;
  }
  const { store: volumes, missing } = await openVolumeStore(join(dir, "volumes"));
  for (const each of [missing, noNat]) if (each) machine.missing.push(each);
  const driver = new LocalDriver({ options, machine, images, base, egress, nat, volumes });
  await driver.takeOver();
  return driver;
}

export class LocalDriver implements Driver {
  readonly name = "local";
  readonly node: string;
  /** All of them: the driver of a Linux machine lacks none. */
  readonly capabilities: Capabilities;
  /** Unpacks a folder of a backup. */
  readonly unpackTree: UnpackTree;
  readonly #parts: Parts;
  readonly #context: WorkloadContext;
  readonly #fleet: Fleet;
  readonly #disks: RootDisks;
  readonly #storage: Storage;
  readonly #egress: EgressProxy;
  readonly #freezing: LocalFreezing;
  readonly #snapshots: LocalSnapshots;
  readonly #volumeCopies: LocalVolumeCopies;
  readonly #creating = new Map<string, Promise<Observed>>();
  readonly #serial = new Serial();
  #stopped = false;

  constructor(parts: Parts) {
    const { options, machine } = parts;
    this.#parts = parts;
    this.node = options.node ?? hostname();
    this.#disks = new RootDisks({
      dir: options.dataDir,
      keepFreeBytes: (options.keepFreeMb ?? KEEP_FREE_MB) * 1024 * 1024,
      roots: () => this.#fleet.liveRoots(),
      onError: (error) => options.onWarning?.("The room of roots could not be bounded.", { error }),
    });
    this.#egress = parts.egress;
    this.#context = {
      node: this.node,
      machine,
      nat: parts.nat,
      disks: null,
      onDoor: {
        platform: options.onPlatform ?? ((_, socket) => socket.destroy()),
        egress: (uid, socket) => this.#egress.serve(uid, socket),
      },
    };
    this.#fleet = new Fleet({
      context: this.#context,
      dir: this.#path("workloads"),
      poolSize: options.poolSize ?? 0,
      onWarning: options.onWarning ?? (() => {}),
    });
    this.#storage = new Storage({
      volumes: parts.volumes,
      drives: this.#path("drives"),
      remote: new RemoteDrives({
        ...{ dir: this.#path("remote-drives"), spawner: machine.spawner, socket: options.driveSocket ?? null },
        mounts: () => this.#fleet.claimed().flatMap(({ alive, record }) => (alive ? record.mounts : [])),
      }),
      usersOf: (volume) => this.#fleet.usersOf(volume),
    });
    this.#freezing = new LocalFreezing(this.#fleet, this.#serial, this.#storage);
    this.unpackTree = treeUnpacker(machine, parts.base.parts);
    const disks = {
      copyTree: treeCopier(machine, parts.base.parts),
      expose: (dir: string) => this.#disks.expose(dir),
    };
    this.#snapshots = new LocalSnapshots({
      ...{ dir: this.#path("snapshots"), fleet: this.#fleet, serial: this.#serial },
      ...disks,
    });
    this.#volumeCopies = new LocalVolumeCopies({
      ...{ dir: this.#path("volume-copies"), volumes: parts.volumes, storage: this.#storage },
      ...{ fleet: this.#fleet, serial: this.#serial, copyTree: disks.copyTree },
    });
    const unpack = openCage(machine, imageStore.programRoot(parts.images));
    const layersInUse = (): Set<string> => this.#layersInUse();
    this.capabilities = {
      freezing: this.#freezing,
      hibernation: new LocalHibernation(this.#fleet, this.#serial, machine.runsc),
      hotMounts: new LocalHotMounts(this.#fleet, this.#serial, this.#storage),
      resizing: new LocalResizing(this.#fleet, this.#serial, machine),
      snapshots: this.#snapshots,
      memorySnapshots: { take: (uid, id) => this.#snapshots.takeWithMemory(uid, id) },
      volumes: this.#storage.volumes,
      volumeCopies: this.#volumeCopies,
      drives: this.#storage.drives,
      images: new LocalImages({
        ...{ store: parts.images, machine, unpack, layersInUse },
        unstock: (isGone) => this.#fleet.unstock(isGone),
      }),
      building: new LocalBuilding({ store: parts.images, disks, fleet: this.#fleet, serial: this.#serial }),
      unpacking: {
        unpack: (archive, target, limits, options = {}) =>
          unpack({ work: { kind: "files", limits }, archive, target }, options),
      },
    };
  }

  async capability<Name extends CapabilityName>(name: Name): Promise<Capabilities[Name] | null> {
    const { machine, options } = this.#parts;
    // No workload in gVisor can get a mount while it runs, and no other one can sleep on disk.
    const onlyGuests = chooseGrade(gradesOf(machine), [options.isolation]) === "vm-like";
    const lacks: Partial<Record<CapabilityName, boolean>> = {
      hotMounts: onlyGuests,
      hibernation: machine.runsc === null,
      memorySnapshots: machine.runsc === null,
      // Without control groups the limits are those of each process, fixed at its start.
      resizing: !machine.cgroups.limits.includes("memory") || !machine.cgroups.limits.includes("cpu"),
    };
    return lacks[name] ? null : this.capabilities[name];
  }

  /** Adopts existing workloads and starts to fill the pool; part of opening. */
  async takeOver(): Promise<void> {
    const { base, machine } = this.#parts;
    const unsized = machine.grade === "none" ? "" : await this.#disks.trial();
    if (unsized === null) this.#context.disks = this.#disks;
    else if (unsized !== "") machine.missing.push(unsized);
    await this.#fleet.open();
    if (this.#fleet.liveRoots().length > 0) this.#disks.watch();
    await this.#snapshots.sweep();
    await this.#volumeCopies.open();
    await sweepDrives(this.#path("drives"));
    await this.#storage.sweep();
    await imageStore.sweepImages(this.#parts.images, this.#layersInUse());
    this.#fleet.stock(base, "outbound");
  }

  async probe(): Promise<Probe> {
    const { machine, volumes, nat, options } = this.#parts;
    const { missing, seccomp, cgroups } = machine;
    return {
      grade: chooseGrade(gradesOf(machine), [options.isolation]),
      grades: gradesOf(machine),
      missing,
      seccomp: seccomp !== null,
      limits: cgroups.limits,
      freezer: cgroups.freezer,
      outbound: nat ? "nat" : "proxy",
      volumes: volumes.sized ? "sized" : "unsized",
      roots: this.#context.disks ? "sized" : "unsized",
    };
  }

  create(spec: WorkloadSpec, { signal }: CallOptions = {}): Promise<Observed> {
    const there = this.#fleet.find(spec.uid);
    if (there && (there.alive || !there.keepsFiles)) return Promise.resolve(there.observe());
    const before = this.#creating.get(spec.uid);
    if (before) return before;
    const creating = this.#create(spec, signal).finally(() => this.#creating.delete(spec.uid));
    this.#creating.set(spec.uid, creating);
    return creating;
  }

  async #create(spec: WorkloadSpec, signal?: AbortSignal): Promise<Observed> {
    if (this.#stopped) throw new PlatformError("unavailable", "The server is stopping.");
    signal?.throwIfAborted();
    checkSpec(spec);
    const image = imageStore.resolveImage(this.#parts.images, spec.image);
    if (!image) throw new PlatformError("bad_request", `There is no image ${spec.image}.`);
    if (this.#parts.machine.grade === "none" && (spec.mounts?.length || spec.snapshot || image.parts.length < 2)) {
      throw needsIsolation();
    }
    const grade = chooseGrade(gradesOf(this.#parts.machine), [this.#parts.options.isolation, spec.isolation]);
    const byProxy = spec.network === "outbound" && (!this.#parts.nat || grade === "vm-like");
    const env = { ...image.env, ...(byProxy ? PROXY_ENV : {}), ...spec.env };
    const { hostMounts, release } = await this.#storage.expose(spec.uid, spec.mounts ?? []);
    try {
      // What starts again stands on what it stood on before; its snapshot may be gone.
      const isNew = this.#fleet.find(spec.uid) === undefined;
      const parts = isNew && spec.snapshot !== undefined ? this.#snapshots.partsOf(spec.snapshot) : image.parts;
      const workDir = spec.workDir ?? image.workDir;
      const memory = isNew && spec.resumed ? { memory: this.#snapshots.memoryOf(spec.snapshot ?? "") } : {};
      const order = { spec, image, parts, mounts: hostMounts, env, workDir, ...memory };
      return (await this.#fleet.start(order, grade, signal)).observe({ untouched: true });
    } finally {
      await release();
    }
  }

  async observe(uid: string): Promise<Observed | null> {
    return this.#fleet.find(uid)?.observe() ?? null;
  }

  async list(): Promise<Observed[]> {
    return this.#fleet.claimed().map((workload) => workload.observe());
  }

  async waitExit(uid: string, options?: CallOptions): Promise<Observed | null> {
    await this.#fleet.find(uid)?.waitExit(options);
    return this.observe(uid);
  }

  async prolong(uid: string, endsAtMs: number): Promise<void> {
    this.#fleet.find(uid)?.prolong(endsAtMs);
  }

  async stats(uid: string): Promise<Stats> {
    return this.#fleet.known(uid).stats();
  }

  async readOutput(uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output> {
    return this.#fleet.known(uid).readOutput(stream, offset, bytesMax);
  }

  async destroy(uid: string, { graceMs = 0, keepFiles = false, ended }: DestroyOptions = {}): Promise<void> {
    await this.#creating.get(uid)?.catch(() => {}); // the caller of that create gets the error
    await this.#serial.run(uid, async () => {
      const workload = this.#fleet.find(uid);
      if (!workload) return;
      if (keepFiles && workload.keepsFiles) return workload.halt(graceMs, ended);
      await this.#fleet.remove(workload, graceMs, ended);
      await this.#snapshots.sweep();
      await this.#storage.sweep();
    });
  }

  #layersInUse(): Set<string> {
    return new Set([...this.#fleet.partsInUse(), ...this.#snapshots.partsKept()].flatMap(({ lowers }) => lowers));
  }

  /** Resolves when the pool is full. */
  stocked(): Promise<void> {
    return this.#fleet.stocked();
  }

  async stop(workloads: OnStop = "keep"): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    await Promise.allSettled(this.#creating.values());
    await this.#fleet.drain();
    await this.#freezing.settled();
    for (const workload of this.#fleet.claimed()) {
      if (workloads === "end" && workload.keepsFiles) await workload.halt(0);
      else if (workloads === "end" || workloads === "kill") await this.#fleet.remove(workload, 0);
      else if (workloads === "freeze" && workload.alive) await workload.setFrozen(true);
      workload.closeDoors();
    }
    this.#disks.stop();
    await this.#fleet.close();
    if (workloads === "end" || workloads === "kill") await this.#storage.sweep();
    await this.#egress.stop();
    await this.#parts.machine.spawner.stop();
    const allEnded = workloads === "end" || workloads === "kill";
    await this.#parts.nat?.stop(allEnded);
    removeCgroupHost(this.#parts.machine.cgroups);
    if (allEnded || this.#fleet.claimed().length === 0) this.#parts.machine.ids?.release();
  }

  #path(...names: string[]): string {
    return join(this.#parts.options.dataDir, ...names);
  }
}
