/**
 * Addresses of workloads and previews: built here, and parsed by the gateway with the same table. There are two forms,
 * and both are always routed: a path below the platform's own address, which needs no DNS, and a host name below the
 * configured domain.
 */

import { isLoopbackName } from "../lib/network/site.ts";

/** `plural` is the path segment, `label` begins the host name, `scope` is the scope needed to call one. */
export const WORKLOADS = {
  agent: { plural: "agents", label: "agt", scope: "agents:get" },
  function: { plural: "functions", label: "mcp", scope: "functions:get" },
  model: { plural: "models", label: "mdl", scope: "models:get" },
  sandbox: { plural: "sandboxes", label: "sbx", scope: "sandboxes:control" },
  job: { plural: "jobs", label: "job", scope: "jobs:create" },
  application: { plural: "applications", label: "app", scope: "applications:get" },
} as const satisfies Record<string, { plural: string; label: string; scope: string }>;

export type WorkloadKind = keyof typeof WORKLOADS;

/** Path segment of previews, beside the workloads' plurals. */
export const PREVIEWS_SEGMENT = "previews";

/** Last label before the domain in a preview's host name. */
export const PREVIEW_LABEL = "preview";

/** Last label before the domain in the host names of the S3 door: `s3.DOMAIN`, and `BUCKET.s3.DOMAIN`. */
export const S3_LABEL = "s3";

/** Browsers resolve names below it to their own machine without DNS, so each workload has its own origin there. */
export const LOOPBACK_DOMAIN = "localhost";

/** Longest DNS label; a workload whose label would be longer gets the path form. */
export const DNS_LABEL_MAX = 63;

export interface AddressBase {
  /** The address at which clients reach the platform, without a trailing slash: `http://127.0.0.1:8080`. */
  publicUrl: string;
  /** Wildcard domain whose names resolve to the platform, if the operator has one: `berth.example.com`. */
  domain?: string | undefined;
}

export function workloadPath(kind: WorkloadKind, workspace: string, name: string): string {
  return `/${workspace}/${WORKLOADS[kind].plural}/${name}`;
}

/** The natural label of a workload; held-words.ts says what happens when it is taken. */
export const workloadLabel = (kind: WorkloadKind, { workspace, name }: { workspace: string; name: string }): string =>
  `${WORKLOADS[kind].label}-${name}-${workspace}`;

/**
 * The address to publish, without a trailing slash, because clients append paths to it. `label` is the host label of a
 * workload whose natural one was taken; "" when it has no host label.
 */
export function workloadUrl(
  base: AddressBase,
  workload: { kind: WorkloadKind; workspace: string; name: string; region: string; label?: string | undefined },
): string {
  const label = workload.label ?? workloadLabel(workload.kind, workload);
  return (
    labelUrl(base, label, workload.region) ??
    `${base.publicUrl}${workloadPath(workload.kind, workload.workspace, workload.name)}`
  );
}

/** `id` is the preview's held word: `{prefix}-{workspace}` when it has a prefix. */
export function previewUrl(base: AddressBase, preview: { workspace: string; id: string; region?: string }): string {
  const tail = preview.region === undefined ? PREVIEW_LABEL : `${preview.region}.${PREVIEW_LABEL}`;
  return labelUrl(base, preview.id, tail) ?? `${base.publicUrl}/${preview.workspace}/${PREVIEWS_SEGMENT}/${preview.id}`;
}

function labelUrl({ publicUrl, domain }: AddressBase, label: string, tail: string): string | null {
  if (domain === undefined || label === "" || label.length > DNS_LABEL_MAX) return null;
  return hostUrl(publicUrl, `${label}.${tail}.${domain}`);
}

/**
 * The domain, with the port where it is needed, below which workloads have host names: the operator's, on loopback
 * `localhost`, and otherwise the platform's own host, below which no name need exist.
 */
export function hostsBelow({ publicUrl, domain }: AddressBase): string {
  const { hostname, port } = new URL(publicUrl);
  const below = domain ?? (isLoopbackName(hostname) ? LOOPBACK_DOMAIN : hostname);
  return port === "" ? below : `${below}:${port}`;
}

/** The address of another host that leads to the platform, by the scheme and the port of the platform's own. */
export function hostUrl(publicUrl: string, host: string): string {
  const { protocol, port } = new URL(publicUrl);
  return `${protocol}//${host}${port === "" ? "" : `:${port}`}`;
}
