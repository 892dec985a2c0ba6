/** A sandbox in the words of E2B, and the other way round. Pure. */

import { createHash } from "node:crypto";
import { randomWord } from "../../lib/ids.ts";
import { SECOND_MS, toIso } from "../../lib/time/clock.ts";
import type { Control } from "./control.ts";
import { networkOf } from "./network-rules.ts";
import { Refusal, unsupported } from "./refusal.ts";

/** Version of E2B's daemon whose abilities the sandboxes have; E2B's clients refuse by themselves what is newer. */
export const ENVD_VERSION = "0.5.7";
/** E2B's name for the image of sandboxes that name none. */
const BASE_TEMPLATE = "base";
/** Images of E2B's own templates; the name of any other template is the name of an image. */
const IMAGES: Readonly<Record<string, string | undefined>> = {
  [BASE_TEMPLATE]: undefined,
  "code-interpreter-v1": "service/code-interpreter:latest",
};
/** The image of a template; undefined for the base image. */
export const imageOfTemplate = (template: string): string | undefined =>
  Object.hasOwn(IMAGES, template) ? IMAGES[template] : template;
/** Lifetime of a sandbox whose client names none, as at E2B. */
const TIMEOUT_DEFAULT_S = 300;
/** Labels that hold what E2B's API knows and the platform does not. */
const TEMPLATE_LABEL = "e2b-template";
const TIMEOUT_LABEL = "e2b-on-timeout";
/** The API key whose tokens sign addresses of files. */
export const KEY_LABEL = "e2b-key";
const OWN_LABEL = /^e2b-/;
/** The platform gives a core for this much memory. */
const MB_PER_CORE = 2048;
/** The end of a sandbox that does not end by itself: E2B's API has no word for it. */
const NEVER = "9999-12-31T23:59:59.000Z";

const NAME_CHARS = 20;
/** `of`: what the name is derived from, so that it is the same next time; by chance without it. */
export const newName = (of?: readonly unknown[] | ""): string =>
  of
    ? `e${createHash("sha256").update(JSON.stringify(of)).digest("hex").slice(0, NAME_CHARS)}`
    : `e${randomWord(NAME_CHARS)}`;

/** A sandbox as the management API shows it, as far as it is read here. */
export interface Shown {
  metadata: { name: string; workspace: string; createdAt?: string; labels?: Record<string, string> };
  spec: {
    runtime?: { image?: string; memory?: number; cpus?: number; storageMb?: number; expires?: string } & Record<
      string,
      unknown
    >;
  } & Record<string, unknown>;
  status?: string;
  state?: string;
}

/** The body of E2B's create. */
export interface NewSandbox {
  templateID?: string;
  timeout?: number | undefined;
  autoPause?: boolean;
  metadata?: Record<string, string>;
  envVars?: Record<string, string>;
  allow_internet_access?: boolean;
  network?: Record<string, unknown>;
  volumeMounts?: unknown;
  mcp?: unknown;
  iam?: unknown;
}

export function toDocument(
  asked: NewSandbox,
  name: string,
  { nowMs, keyId }: Pick<Control, "nowMs" | "keyId">,
): object {
  if (asked.mcp) throw unsupported("An MCP gateway inside the sandbox (`mcp`)");
  if (asked.iam) throw unsupported("`iam`");
  const template = asked.templateID || BASE_TEMPLATE;
  const image = imageOfTemplate(template);
  for (const key of Object.keys(asked.metadata ?? {}))
    if (OWN_LABEL.test(key)) throw unsupported(`A metadata key that begins with "e2b-" (${key})`);
  const network = networkOf(asked.network, asked.allow_internet_access);
  return {
    metadata: {
      name,
      labels: {
        ...asked.metadata,
        [TEMPLATE_LABEL]: template,
        ...(keyId ? { [KEY_LABEL]: keyId } : {}),
        ...(asked.autoPause ? { [TIMEOUT_LABEL]: "pause" } : {}),
      },
    },
    spec: {
      runtime: {
        ...(image === undefined ? {} : { image }),
        envs: Object.entries(asked.envVars ?? {}).map(([key, value]) => ({ name: key, value })),
        ...(asked.autoPause ? {} : { expires: endOf(asked.timeout, nowMs) }),
      },
      ...(network ? { network } : {}),
      ...(asked.volumeMounts ? { volumes: volumesOf(asked.volumeMounts) } : {}),
    },
  };
}

/** The management API judges what the members are. */
function volumesOf(mounts: unknown): object[] {
  if (!Array.isArray(mounts) || !mounts.every((mount): mount is Mount => typeof mount === "object" && mount !== null))
    throw new Refusal(400, "volumeMounts must be a list of objects.");
  return mounts.map(({ name, path }) => ({ name, mountPath: path }));
}

interface Mount {
  name?: unknown;
  path?: unknown;
}

export const endOf = (timeoutS: number | undefined, nowMs: number): string =>
  toIso(nowMs + Math.max(1, timeoutS ?? TIMEOUT_DEFAULT_S) * SECOND_MS);

/** Whether the sandbox sleeps at its end, instead of ending. */
export const pausesAtEnd = ({ metadata }: Shown): boolean => metadata.labels?.[TIMEOUT_LABEL] === "pause";

/** Whether a client of E2B made the sandbox; others end only when their own record says so. */
export const isMadeHere = ({ metadata }: Shown): boolean => metadata.labels?.[TEMPLATE_LABEL] !== undefined;

/** The sandbox with another end; null = it does not end by itself. */
export function withEnd({ metadata, spec }: Shown, expires: string | null): object {
  const { expires: _before, ...runtime } = spec.runtime ?? {};
  return { metadata, spec: { ...spec, runtime: { ...runtime, ...(expires === null ? {} : { expires }) } } };
}

/**
 * A sandbox sleeps whenever nobody uses it, and wakes for the next request, so a sleeping one that has an end ahead is
 * still "running" for E2B's clients.
 */
export const stateOf = ({ state, spec }: Shown): "running" | "paused" =>
  state === "STANDBY" && spec.runtime?.expires === undefined ? "paused" : "running";

export function toWire(shown: Shown, sandboxID: string): Record<string, unknown> {
  const { metadata, spec } = shown;
  const { image = "", memory = 0, cpus = memory / MB_PER_CORE, storageMb, expires } = spec.runtime ?? {};
  const labels = metadata.labels ?? {};
  const own = Object.entries(labels).filter(([key]) => !OWN_LABEL.test(key));
  return {
    sandboxID,
    templateID: labels[TEMPLATE_LABEL] ?? image,
    alias: metadata.name,
    clientID: metadata.workspace,
    startedAt: metadata.createdAt,
    endAt: expires ?? NEVER,
    cpuCount: Math.max(1, Math.round(cpus)),
    memoryMB: memory,
    diskSizeMB: storageMb ?? 0,
    metadata: Object.fromEntries(own),
    state: stateOf(shown),
    envdVersion: ENVD_VERSION,
    lifecycle: { onTimeout: pausesAtEnd(shown) ? "pause" : "kill", autoResume: true },
  };
}
