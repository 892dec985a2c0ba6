/**
 * The port through which the platform runs workloads: sandboxes, agents, MCP servers, job tasks, builds. A driver turns
 * a specification into a running, isolated set of processes and says what it observes; it decides nothing about names,
 * tenants or lifetimes. Every call is idempotent by uid, so that a reconcile loop may repeat it after any crash.
 *
 * The methods here are the core, which every driver has. All else is a capability (`capabilities/`), which a caller asks
 * for by name and a driver may lack.
 *
 * What a driver observes is plain data. `dial` is a pure function of that data: any process of the node can reach a
 * workload from its stored record, without asking the driver that made it.
 */

import type { Capabilities, CapabilityName } from "./capabilities/capabilities.ts";
import type { CallOptions } from "./dial/endpoint.ts";
import type { Grade, Observed, Output, Stats, WorkloadSpec } from "./workload.ts";

export interface Driver {
  /** Its name in the list of drivers (`drivers/index.ts`). */
  readonly name: string;
  /** Name of this machine; stands in every observation. */
  readonly node: string;

  /** null: this driver cannot do that. A promise, because a driver may still be opening. */
  capability<Name extends CapabilityName>(name: Name): Promise<Capabilities[Name] | null>;

  /** What isolation this machine can give, measured by doing it. */
  probe(): Promise<Probe>;

  /**
   * Runs until the workload accepts connections. The same uid again answers with what is there. A sandbox (a workload
   * without a command) keeps its files when it ends: the same uid then starts it again on them, whatever image the
   * specification names.
   */
  create(spec: WorkloadSpec, options?: CallOptions): Promise<Observed>;
  /** null: this driver knows nothing of it. An exited workload stays observable until it is destroyed. */
  observe(uid: string): Promise<Observed | null>;
  list(): Promise<Observed[]>;
  /** Resolves when it ends (or is destroyed); rejects only when the signal aborts. */
  waitExit(uid: string, options?: CallOptions): Promise<Observed | null>;
  /** Moves the time at which a workload with `exec.endsAtMs` ends by itself. Unknown or ended: nothing to do. */
  prolong(uid: string, endsAtMs: number): Promise<void>;
  stats(uid: string): Promise<Stats>;
  /** What the foreground command wrote, from a byte offset on; the head of a very long output is dropped. */
  readOutput(uid: string, stream: "stdout" | "stderr", offset: number, bytesMax: number): Promise<Output>;

  /** SIGTERM, `graceMs` of patience, then SIGKILL; removes every trace unless told. Unknown uid: nothing to do. */
  destroy(uid: string, options?: DestroyOptions): Promise<void>;

  /** Ends this driver. Without an argument workloads go on. */
  stop(workloads?: OnStop): Promise<void>;
}

export interface DestroyOptions {
  graceMs?: number;
  /** A sandbox ends and keeps its files. Of a command nothing is kept. */
  keepFiles?: boolean;
  /** Called when nothing of it runs any more and its output can be read for the last time. */
  ended?(): Promise<void>;
}

/**
 * Workloads at the end of their driver: they go on ("keep"), go on frozen where the driver can freeze, end while
 * sandboxes keep their files ("end"), or are destroyed ("kill").
 */
export type OnStop = "keep" | "freeze" | "end" | "kill";

export interface Probe {
  /** The grade that a workload gets unless it asks for more. */
  grade: Grade;
  /** Every grade that a workload may ask for, strongest first. */
  grades: Grade[];
  /** What this machine lacks for a higher grade or a full one, one sentence each. */
  missing: string[];
  seccomp: boolean;
  /** Which limits hold for the workload as a whole. Those absent are at most per-process limits. */
  limits: ("memory" | "cpu" | "pids")[];
  freezer: "cgroup" | "signal" | "none";
  /** How outbound connections leave: address translation, the platform's own proxy, or not at all. */
  outbound: "nat" | "proxy" | "none";
  /** Whether a volume's size is enforced by a file system of its own. */
  volumes: "sized" | "unsized";
  /** The same for what workloads write outside of volumes and drives. */
  roots: "sized" | "unsized";
}

/** Limits that a specification may ask for and this machine does not hold. */
export const unheldLimits = ({ limits }: Pick<Probe, "limits">): string[] =>
  (["memory", "cpu", "pids"] as const).filter((limit) => !limits.includes(limit));
