/** Counts the resources of a workspace, under the names that clients know. */
import type { Platform } from "../port.ts";

/** Name in `resourceCounts` -> kind. */
const COUNTED: Record<string, string> = {
  agents: "agent",
  functions: "function",
  models: "model",
  sandboxes: "sandbox",
  policies: "policy",
  jobs: "job",
  volumes: "volume",
  drives: "drive",
  volumetemplates: "volumetemplate",
  integrationconnections: "integrationconnection",
  previews: "preview",
  customdomains: "customdomain",
  images: "image",
};

export async function countResources(workspace: string, { store }: Pick<Platform, "store">) {
  const [byKind, serviceAccounts] = await Promise.all([
    store.resources.countsIn(workspace),
    store.keys.countServiceAccounts(workspace),
  ]);
  const counts = Object.fromEntries(Object.entries(COUNTED).map(([word, kind]) => [word, byKind[kind] ?? 0]));
  return { ...counts, serviceaccounts: serviceAccounts };
}

/** Describes what is deleted with a workspace: "2 drives, 1 serviceaccounts", or "nothing". */
export async function describeContent(workspace: string, deps: Pick<Platform, "store">): Promise<string> {
  const counts = await countResources(workspace, deps);
  const known = new Set(Object.values(COUNTED));
  const others = Object.entries(await deps.store.resources.countsIn(workspace)).filter(([kind]) => !known.has(kind));
  const parts = [...Object.entries(counts), ...others.map(([kind, n]) => [`${kind}s`, n] as const)]
    .filter(([, n]) => n > 0)
    .map(([word, n]) => `${n} ${word}`);
  return parts.length > 0 ? parts.join(", ") : "nothing";
}
