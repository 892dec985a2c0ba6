/** What the platform records about a sandbox. */
import type { PlatformError } from "../../contract/errors.ts";
import type { InstancesState } from "../../contract/instance.ts";
import type { Bandwidth } from "../../lib/network/egress/bandwidth.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { DriveMountIntent } from "../drive/mount-intent.ts";
import type { Away } from "../node/away.ts";
import type { UploadTicket } from "../upload-ticket.ts";

export type SandboxState = InstancesState<Endpoint> & {
  /** Fingerprint of the running sandbox; when the spec's fingerprint differs, the sandbox is created again. */
  deployed?: string;
  /** When the sandbox last fell asleep, woke up or started. */
  idleSince?: number;
  compute?: "RUNNING" | "STANDBY";
  /** When its memory could last not be written to disk. */
  hibernateTriedAt?: number;
  /** When memory of the machine last ran short and the sandbox was chosen to give its own back; see `pressure.ts`. */
  pressedAt?: number;
  /** When a client last asked for the sandbox to sleep at once. */
  pausedAt?: number;
  lastUsedAt?: number;
  isolation?: string;
  /** What runs, for an image of a registry: `docker.io/library/python:3.12@sha256:…`. */
  imageSource?: string | undefined;
  /** Limits of the spec that this machine cannot enforce. */
  unheld?: string[];
  /** Whether programs in the sandbox trust the authority of the workspace, which routes need. */
  trusts?: boolean;
  driveMounts?: DriveMountIntent[];
  /** An archive with a Dockerfile is awaited. */
  upload?: UploadTicket | undefined;
  /** New limits that a client asked for and the machine does not hold yet. */
  resize?: ResizeIntent | undefined;
  /** How the last resize ended, for the client that waits for it. */
  resizeOutcome?: ResizeOutcome | undefined;
  /** Since when the running sandbox has this memory: usage is counted by it from then on. Absent: since its start. */
  resized?: { atMs: number; memory: number } | undefined;
  /** The image is built. */
  build?: SandboxBuild | undefined;
  fork?: ForkOrigin;
  /** A client asked to bring the sandbox back to the snapshot in `fork`. */
  restoring?: boolean | undefined;
  /** The limits that hold; they depend on more than the record. */
  bandwidth?: Bandwidth | undefined;
  /** Set while its node is away. */
  away?: Away;
  terminatedAt?: number;
};

/** The members of `spec.runtime` that a resize changes. */
export interface Size {
  memory: number;
  cpus?: number;
}

export interface ResizeIntent {
  id: string;
  /** As they were when the client asked. */
  from: Size;
  to: Size;
}

/** `code` and `message` when it was refused. */
export type ResizeOutcome = { id: string } & Partial<Pick<PlatformError, "code" | "message">>;

export interface SandboxBuild {
  /** Digest of the archive. */
  source: string;
  revision: string;
}

export interface ForkOrigin {
  /** uid of the sandbox that the files come from. */
  of: string;
  /** Its name at that time; absent in forks of older versions. */
  name?: string;
  snapshot: string;
  /** The files belong to this image. A fork with another image starts without them. */
  image: string;
  /** Its first start goes on from the memory of the snapshot; later ones begin with the files alone. */
  memory?: true;
}
