/** Finds the workload and port behind a preview's address. */

import type { Makers } from "../auth/rights/makers.ts";
import { hostLabelOf } from "../contract/held-words.ts";
import { mayEnter } from "../contract/kept-access.ts";
import { isExpiredToken, previewTokenSlot } from "../contract/preview-tokens.ts";
import { CLAIMS } from "../contract/references.ts";
import { fixedHeaders } from "../http/header-rules.ts";
import { kindNamed } from "../kinds/index.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import type { Door, Workload } from "./deps.ts";
import { type FallbackDomains, fallbackFor, readFallbackDomains } from "./fallback-domains.ts";

/** The port number that stands for the sandbox's own API. */
export const API_PORT = 443;

/** Kinds that may claim a host name or name a fallback for unclaimed hosts. */
const CLAIMANTS = new Set(["preview", "application", "customdomain"]);

/** Previews of one name in different sandboxes of a workspace; the newest live one is served. */
const PREVIEWS_MAX = 50;

interface PreviewSpec {
  port: number;
  public?: boolean;
  requestHeaders?: Record<string, string>;
  responseHeaders?: Record<string, string>;
}

export interface PreviewLookup extends Running {
  /** Whether a resource claims this host. Answered from memory, because every request asks. */
  isClaimed(host: string): boolean;
  byId(workspace: string | null, id: string): Promise<Resource | null>;
  byHost(host: string): Promise<Resource | null>;
  /** The workload that the preview leads to; `of` is the workload of the sandbox itself. */
  workload(preview: Resource, of: Workload): Workload;
}

export interface PreviewLookupDeps extends Pick<Makers, "makerOf"> {
  store: Store;
  clock: Clock;
}

export function createPreviewLookup({ store, clock, makerOf }: PreviewLookupDeps): PreviewLookup {
  let hosts: ReadonlySet<string> = new Set();
  let fallbacks: FallbackDomains = new Map();
  const refresh = async (): Promise<void> => {
    hosts = new Set(await store.links.wordsAcrossWorkspaces(CLAIMS.host));
    fallbacks = await readFallbackDomains(store);
  };
  // A failed read is repeated with the next change; until then the previous hosts are served.
  const look = (): void => void refresh().catch(() => {});
  const unsubscribe = store.resources.onChange((kind) => {
    if (CLAIMANTS.has(kind)) look();
  });
  look();

  const live = (preview: Resource | null): Resource | null =>
    preview?.kind === "preview" && preview.deletedAt === null && !kindNamed("preview").isOver?.(preview, clock.now())
      ? preview
      : null;

  async function fallback(host: string): Promise<Resource | null> {
    const named = fallbackFor(host, fallbacks);
    const previews = named
      ? await store.resources.listNested(named.workspace, "preview", PREVIEWS_MAX, named.preview)
      : [];
    return previews.find((preview) => live(preview) !== null) ?? null;
  }

  return {
    isClaimed: (host) => hosts.has(host) || fallbackFor(host, fallbacks) !== undefined,
    async stop() {
      unsubscribe();
    },
    async byId(workspace, id) {
      const held = await store.heldWords.holderOf("preview", id);
      const found = held && live(await store.resources.getByUid(held.workspace, held.uid));
      // A prefix that its preview gave up stays reserved and leads nowhere until the workspace uses it again.
      if (!found || hostLabelOf(found) !== id) return null;
      return workspace === null || found.workspace === workspace ? found : null;
    },
    async byHost(host) {
      const owner = await store.links.holderOfAcrossWorkspaces(CLAIMS.host, host);
      // A claimed host never gets the fallback, even while it leads nowhere.
      return owner ? live(await store.resources.getByUid(owner.workspace, owner.uid)) : fallback(host);
    },
    workload(preview, of) {
      const { port, public: open = false, requestHeaders, responseHeaders } = preview.spec as unknown as PreviewSpec;
      const door: Door = port === API_PORT ? "api" : port;
      return {
        ...of,
        public: open,
        door,
        preview: {
          id: preview.uid,
          public: open,
          requestHeaders: fixedHeaders(requestHeaders),
          responseHeaders: fixedHeaders(responseHeaders),
          async checkToken(value) {
            const scope = { workspace: preview.workspace, kind: "previewtoken", parent: preview.uid };
            const token = await store.resources.get(scope, previewTokenSlot(value));
            if (token === null || isExpiredToken(token, clock.now())) return false;
            const maker = await makerOf(token);
            const sinceMs = Math.max(of.kept?.sinceMs ?? 0, maker?.sinceMs ?? 0);
            return maker !== null && mayEnter(of.kept ?? null, maker.role) && token.createdAt >= sinceMs;
          },
        },
      };
    },
  };
}
