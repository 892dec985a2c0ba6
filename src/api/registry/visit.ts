/** A request to a repository of the registry, and its answer. */
import type { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import type { Membership } from "../../auth/authenticator.ts";
import type { RepositoryName } from "../../kinds/image/registry/place.ts";
import type { Platform } from "../../kinds/port.ts";
import type { Guest } from "./access.ts";
import type { Action } from "./tokens.ts";

/** A request whose caller may make it. */
export interface Visit {
  request: FastifyRequest;
  query: URLSearchParams;
  /** As the client wrote it: `team/tool`. */
  repository: string;
  name: RepositoryName;
  guest: Guest;
  /** The caller in the workspace of the repository. */
  member: Membership;
  /** What follows the repository: a digest, a tag, the id of an upload. */
  rest: string;
  deps: Platform;
  /** Whether the caller may also do this, in another repository perhaps. */
  may(repository: string, action: Action): Promise<boolean>;
}

export interface DoorAnswer {
  status: number;
  headers: Record<string, string | number>;
  /** Not made for HEAD. */
  body?: () => Buffer | Promise<Buffer | Readable>;
}

export interface DoorRoute {
  method: string;
  /** What follows the repository in the address; the group is `rest`. */
  path: RegExp;
  action: Action;
  /** The call is written to the audit log. */
  isAudited?: true;
  handle(visit: Visit): Promise<DoorAnswer>;
}
