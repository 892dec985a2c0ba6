/** One request to E2B's control API, as its endpoints see it. */
import type { Management } from "./management.ts";
import type { Place } from "./sandbox-id.ts";

export interface Control {
  manage: Management;
  /** Parsed JSON; an absent body is an empty object. */
  body: Record<string, unknown>;
  query: URLSearchParams;
  nowMs: number;
  /** The API key of the caller; null for a caller without one. */
  keyId: string | null;
  /** The client's words for the parameters of the path. */
  params: string[];
  /** Refuses with 404 what the caller cannot see. */
  placeOf(sandboxID: string): Promise<Place>;
  idOf(place: Place): Promise<string>;
  /** The token that opens the sandbox's own API and its ports. */
  accessTokenFor(place: Place): Promise<string>;
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
