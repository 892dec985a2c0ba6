/** Observed state of a workload: its code and its running copies. */

import type { InstancesState } from "../../contract/instance.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { PullPolicy } from "../image/images.ts";
import type { UploadTicket } from "../upload-ticket.ts";
import type { WorkloadSpec } from "./spec.ts";

export type Workload = Resource<WorkloadSpec, DeployState>;

export type DeployState = InstancesState<Endpoint> & {
  /** The revision that answers requests. */
  activeRevision?: string;
  /** The canary that is ready to run; see contract/revision-share.ts. */
  canaryRevision?: string | undefined;
  /** The revision that answered before. */
  previousRevision?: string;
  /** The awaited upload and its revision. */
  upload?: UploadTicket | undefined;
  /** The code of each revision. A revision without an entry runs the code of the one before. */
  revisions?: Record<string, RevisionCode>;
  copies?: Copy[];
  /** Crashes in a row without a healthy run between them, by revision. */
  crashes?: Record<string, Crashes>;
};

export interface RevisionCode {
  /** Digest of the archive. */
  source?: string;
  uploadedAt?: number;
  /** Becomes `bundle` once the build has succeeded. */
  building?: Bundle;
  bundle?: Bundle;
  /** Why the code can never run. */
  failed?: string;
}

/** Code that is ready to run: a drive with its files, or the image that was built from its Dockerfile. */
export interface Bundle {
  drive?: string;
  /** The driver's name for the image. */
  image?: string;
  /** Start command; empty: the image's own. */
  argv: string[];
  /** The code looks like an MCP server that uses standard input and output. */
  stdio?: boolean;
}

export interface Copy {
  uid: string;
  revision: string;
  /** starting (not yet listening) → ready (gets requests) → draining (finishes those it has). */
  phase: "starting" | "ready" | "draining";
  /** When the copy entered its phase. */
  since: number;
  /** The image that it runs, where that came from a registry: `docker.io/library/python:3.12@sha256:…`. */
  imageSource?: string;
}

export interface Crashes {
  count: number;
  lastAt: number;
  /** Crashes in a row before the revision ever got requests. A canary has none, however often it crashed. */
  firstStarts?: number;
}

export const stateOf = ({ state }: { state: DeployState }): DeployState => state;

export interface Crash {
  nowMs: number;
  /** The copy had been ready for long enough to count as well. */
  wasHealthy: boolean;
  /** The revision gets requests, as the active one or as the canary. */
  wasLive: boolean;
}

/** The crashes of a revision after one more. */
export function afterCrash(before: Crashes | undefined, { nowMs, wasHealthy, wasLive }: Crash): Crashes {
  const count = wasHealthy ? 1 : (before?.count ?? 0) + 1;
  return { count, lastAt: nowMs, ...(wasLive ? {} : { firstStarts: (before?.firstStarts ?? 0) + 1 }) };
}

/** The state once a revision answers; `kept` are the stored revisions. */
export function afterActivation(state: DeployState, revision: string, kept: readonly string[]): DeployState {
  const { activeRevision: before = revision, previousRevision } = state;
  const previous = before === revision ? previousRevision : before;
  return {
    ...state,
    activeRevision: revision,
    ...(previous === undefined ? {} : { previousRevision: previous }),
    revisions: stillNeeded(state, kept),
    // A revision that is chosen again later is tried again, whatever it did in its earlier life.
    crashes: {},
  };
}

/** Drops stored revisions that are no longer kept, unless a kept revision runs their code. */
function stillNeeded(state: DeployState, kept: readonly string[]): Record<string, RevisionCode> {
  const needed = new Set([...kept, ...kept.map((id) => codeOf(state, id)?.owner)]);
  return Object.fromEntries(Object.entries(state.revisions ?? {}).filter(([id]) => needed.has(id)));
}

/** The code of a revision: its own, otherwise that of the nearest earlier revision that has some. */
export function codeOf(
  { revisions = {} }: DeployState,
  revision: string,
): (RevisionCode & { owner: string; source: string }) | null {
  const owners = Object.keys(revisions)
    .filter((id) => Number(id) <= Number(revision) && revisions[id]?.source !== undefined)
    .sort((a, b) => Number(b) - Number(a));
  const [owner = ""] = owners;
  const code = revisions[owner];
  return code?.source === undefined ? null : { ...code, owner, source: code.source };
}

/** Agents, functions and jobs have these members in `runtime`, applications at the top of the spec. */
export interface RuntimeSpec {
  image?: string;
  imagePullPolicy?: PullPolicy;
  /** Credentials for the image's registry. */
  dockerConfig?: unknown;
  memory?: number;
  storageMb?: number;
  envs?: { name: string; value?: string }[];
  minScale?: number;
  maxScale?: number;
  transport?: string;
  port?: number;
  /** Applications only: the snapshot to run from, and the command to start in it. */
  snapshot?: string;
  command?: string[];
  workingDir?: string;
}

export const runtimeOf = (kind: string, spec: Record<string, unknown>): RuntimeSpec =>
  (kind === "application" ? spec : (spec.runtime ?? {})) as RuntimeSpec;
