/** One request to E2B's control API, as its endpoints see it. */
import type { Management } from "./management.ts";
import type { Place } from "./sandbox-id.ts";
import type { StepFiles } from "./templates/step-files.ts";

/** `path` is that of an upload address. */
export type SendArchive = (path: string, archive: NodeJS.ReadableStream) => Promise<void>;

export interface Control {
  manage: Management;
  /** Parsed JSON; an absent body is an empty object. */
  body: Record<string, unknown>;
  query: URLSearchParams;
  nowMs: number;
  /** The API key of the caller; null for a caller without one. */
  keyId: string | null;
  /** The caller, whose files a build of a template uses. */
  owner: string;
  stepFiles: StepFiles;
  /** Sends an archive to an upload address of the platform. */
  send: SendArchive;
  /** Where the client reaches this façade. */
  address: string;
  /** The client's words for the parameters of the path. */
  params: string[];
  /** Refuses with 404 what the caller cannot see. */
  placeOf(sandboxID: string): Promise<Place>;
  idOf(place: Place): Promise<string>;
  /** The sandbox's id, and the token that opens its own API and its ports. */
  reachOf(place: Place): Promise<{ id: string; token: string }>;
  /** A name for the sandbox that the request makes. A request that is sent again with its Idempotency-Key has the same. */
  nameFor(index: number): string;
  /** Domain below which ports of sandboxes have host names. */
  domain: string;
}

export interface Answered {
  status: number;
  body?: unknown;
  headers?: string[];
}

export type Endpoint = (control: Control) => Promise<Answered>;
