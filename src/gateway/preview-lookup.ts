/** Finds the workload and port behind a preview's address. */

import type { Makers } from "../auth/rights/makers.ts";
import { hostLabelOf } from "../contract/held-words.ts";
import { mayEnter } from "../contract/kept-access.ts";
import { isExpiredToken, previewTokenSlot, tokenEndOf } from "../contract/preview-tokens.ts";
import { fixedHeaders } from "../http/header-rules.ts";
import { kindNamed } from "../kinds/index.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import type { Door, Workload } from "./deps.ts";
import type { Domain } from "./domain-table.ts";

/** The port number that stands for the sandbox's own API. */
export const API_PORT = 443;

/** Previews of one name in different sandboxes of a workspace; the newest live one is served. */
const PREVIEWS_MAX = 50;

interface PreviewSpec {
  port: number;
  public?: boolean;
  requestHeaders?: Record<string, string>;
  responseHeaders?: Record<string, string>;
}

export interface PreviewLookup {
  byId(workspace: string | null, id: string): Promise<Resource | null>;
  byUid(workspace: string, uid: string): Promise<Resource | null>;
  /** The preview for hosts below the domain that no resource claims. */
  fallbackOf(domain: Domain): Promise<Resource | null>;
  /** The workload that the preview leads to; `of` is the workload of the sandbox itself. */
  workload(preview: Resource, of: Workload): Workload;
  /** Until when this token opens the preview, unless something changes; 0 = it does not. */
  tokenUntilMs(preview: Resource, of: Workload, token: string): Promise<number>;
}

export interface PreviewLookupDeps extends Pick<Makers, "makerOf"> {
  store: Store;
  clock: Clock;
}

export function createPreviewLookup({ store, clock, makerOf }: PreviewLookupDeps): PreviewLookup {
  const live = (preview: Resource | null): Resource | null =>
    preview?.kind === "preview" && preview.deletedAt === null && endOf(preview) > clock.now() ? preview : null;

  async function tokenUntilMs(preview: Resource, of: Workload, value: string): Promise<number> {
    const scope = { workspace: preview.workspace, kind: "previewtoken", parent: preview.uid };
    const token = await store.resources.get(scope, previewTokenSlot(value));
    if (token === null || isExpiredToken(token, clock.now())) return 0;
    const maker = await makerOf(token);
    const sinceMs = Math.max(of.kept?.sinceMs ?? 0, maker?.sinceMs ?? 0);
    if (maker === null || !mayEnter(of.kept ?? null, maker.role) || token.createdAt < sinceMs) return 0;
    return Math.min(tokenEndOf(token), maker.untilMs);
  }

  return {
    tokenUntilMs,
    async byId(workspace, id) {
      const held = await store.heldWords.holderOf("preview", id);
      const found = held && live(await store.resources.getByUid(held.workspace, held.uid));
      // A prefix that its preview gave up stays reserved and leads nowhere until the workspace uses it again.
      if (!found || hostLabelOf(found) !== id) return null;
      return workspace === null || found.workspace === workspace ? found : null;
    },
    byUid: async (workspace, uid) => live(await store.resources.getByUid(workspace, uid)),
    async fallbackOf({ workspace, fallbackPreview }) {
      if (fallbackPreview === null) return null;
      const previews = await store.resources.listNested(workspace, "preview", PREVIEWS_MAX, fallbackPreview);
      return previews.find((preview) => live(preview) !== null) ?? null;
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
          untilMs: endOf(preview),
          checkToken: async (value) => (await tokenUntilMs(preview, of, value)) > 0,
        },
      };
    },
  };
}

const endOf = (preview: Resource): number => kindNamed("preview").endOf?.(preview) ?? Number.POSITIVE_INFINITY;
