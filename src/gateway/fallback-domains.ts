/** Verified domains whose owners named a preview for hosts that no resource claims. */
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";

export interface Fallback {
  workspace: string;
  /** Name of a preview of the workspace. */
  preview: string;
}

/** Fallbacks by domain name; few domains have one. */
export type FallbackDomains = ReadonlyMap<string, Fallback>;

const PAGE = 500;

export async function readFallbackDomains({ resources }: Store): Promise<FallbackDomains> {
  const found = new Map<string, Fallback>();
  for (let after = ""; ; ) {
    const page = await resources.listAcrossWorkspaces("customdomain", after, PAGE);
    for (const domain of page) {
      const preview = fallbackOf(domain);
      if (preview !== null) found.set(domain.name, { workspace: domain.workspace, preview });
    }
    if (page.length < PAGE) return found;
    after = page.at(-1)?.uid ?? "";
  }
}

function fallbackOf({ spec, deletedAt }: Resource): string | null {
  const { status, fallbackPreviewId: preview } = spec;
  return deletedAt === null && status === "verified" && typeof preview === "string" && preview !== "" ? preview : null;
}

/** The fallback of the nearest domain at or above the host. */
export function fallbackFor(host: string, domains: FallbackDomains): Fallback | undefined {
  if (domains.size === 0) return undefined;
  for (let name = host; ; name = name.slice(name.indexOf(".") + 1)) {
    const found = domains.get(name);
    if (found || !name.includes(".")) return found;
  }
}
