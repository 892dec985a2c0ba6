/** From a preview's address to the workload and port behind it. */
import { hostLabelOf } from "../contract/held-words.ts";
import { isExpiredToken, previewTokenSlot } from "../contract/preview-tokens.ts";
import { CLAIMS } from "../contract/references.ts";
import { kindNamed } from "../kinds/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Resource } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import type { Door, Workload } from "./deps.ts";
import { fixedHeaders } from "./header-rules.ts";

/** The port by which the sandbox's own API is meant. */
export const API_PORT = 443;

/** Kinds that may claim a host name. */
const CLAIMANTS = new Set(["preview", "application"]);

interface PreviewSpec {
  port: number;
  public?: boolean;
  requestHeaders?: Record<string, string>;
  responseHeaders?: Record<string, string>;
}

export interface PreviewLookup extends Running {
  /** Whether somebody claimed this host; answered from memory, because every request asks. */
  isClaimed(host: string): boolean;
  byId(workspace: string | null, id: string): Promise<Resource | null>;
  byHost(host: string): Promise<Resource | null>;
  /** The workload that the preview leads to; `of` is the workload of the sandbox itself. */
  workload(preview: Resource, of: Workload): Workload;
}

export function createPreviewLookup({ store, clock }: { store: Store; clock: Clock }): PreviewLookup {
  let hosts: ReadonlySet<string> = new Set();
  const refresh = async (): Promise<void> => {
    hosts = new Set(await store.links.wordsAcrossWorkspaces(CLAIMS.host));
  };
  // A failed look is made good by the next change; until then the hosts of before are served.
  const look = (): void => void refresh().catch(() => {});
  const unsubscribe = store.resources.onChange((kind) => {
    if (CLAIMANTS.has(kind)) look();
  });
  look();

  const live = (preview: Resource | null): Resource | null =>
    preview?.kind === "preview" && preview.deletedAt === null && !kindNamed("preview").isOver?.(preview, clock.now())
      ? preview
      : null;

  async function holder(claim: string, word: string): Promise<Resource | null> {
    const owner = await store.links.holderOfAcrossWorkspaces(claim, word);
    return owner && live(await store.resources.getByUid(owner.workspace, owner.uid));
  }

  return {
    isClaimed: (host) => hosts.has(host),
    async stop() {
      unsubscribe();
    },
    async byId(workspace, id) {
      const held = await store.heldWords.holderOf("preview", id);
      const found = held && live(await store.resources.getByUid(held.workspace, held.uid));
      // A prefix that was given up is still held, and leads nowhere until its workspace uses it again.
      if (!found || hostLabelOf(found) !== id) return null;
      return workspace === null || found.workspace === workspace ? found : null;
    },
    byHost: (host) => holder(CLAIMS.host, host),
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
            return token !== null && !isExpiredToken(token, clock.now());
          },
        },
      };
    },
  };
}
