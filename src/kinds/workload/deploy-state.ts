/** What the platform knows about the code of a workload and its running copies. */

import type { InstancesState } from "../../contract/instance.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { UploadTicket } from "../uploads.ts";

export interface DeployState extends InstancesState<Endpoint> {
  /** The revision that answers; the gateway follows it. */
  activeRevision?: string;
  /** The canary that can run; see contract/revision-share.ts. */
  canaryRevision?: string | undefined;
  /** The one that answered before. */
  previousRevision?: string;
  /** An archive that may come, and the revision it is for. */
  upload?: UploadTicket;
  /** What is known of each revision's code; one without an entry runs the code of the one before. */
  revisions?: Record<string, RevisionCode>;
  copies?: Copy[];
  /** Ends in a row without a healthy time between them, by revision. */
  crashes?: Record<string, Crashes>;
}

export interface RevisionCode {
  /** Digest of the archive. */
  source?: string;
  uploadedAt?: number;
  /** What will be the bundle once its build has ended well. */
  building?: Bundle;
  bundle?: Bundle;
  /** Why it will never run. */
  failed?: string;
}

/** Code that is ready to run: a drive with its files, and how to start it. */
export interface Bundle {
  drive: string;
  argv: string[];
  /** It looks like an MCP server on standard input and output. */
  stdio?: boolean;
}

export interface Copy {
  uid: string;
  revision: string;
  /** starting (not yet listening) → ready (gets requests) → draining (finishes those it has). */
  phase: "starting" | "ready" | "draining";
  /** When it entered its phase. */
  since: number;
}

export interface Crashes {
  count: number;
  lastAt: number;
}

export const stateOf = (resource: Pick<Resource, "state">): DeployState => resource.state as DeployState;

/** The code of a revision: its own, or that of the nearest one before it which has some. */
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

/** Agents, functions and jobs say it below `runtime`, applications at the top. */
export interface RuntimeSpec {
  image?: string;
  memory?: number;
  envs?: { name: string; value?: string }[];
  minScale?: number;
  maxScale?: number;
  transport?: string;
  port?: number;
  /** Of applications: the files to run from, and what to start in them. */
  snapshot?: string;
  command?: string[];
  workingDir?: string;
}

export const runtimeOf = (kind: string, spec: Record<string, unknown>): RuntimeSpec =>
  (kind === "application" ? spec : (spec.runtime ?? {})) as RuntimeSpec;
