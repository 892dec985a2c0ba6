/** The list of all models that a caller may use, in the words of OpenAI or Anthropic. */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { GatewayDeps, Principal } from "../../gateway/deps.ts";
import type { Downstream } from "../../http/downstream.ts";
import { SECOND_MS, toIso } from "../../lib/time/clock.ts";
import { writeJson } from "../../models/answer-writer.ts";
import { providerOf } from "../../models/providers/catalogue.ts";
import type { Store } from "../../store/store.ts";

export type CatalogueStyle = "openai" | "anthropic";

export interface ListedModel {
  /** `workspace/name`. */
  id: string;
  createdAt: number;
  provider: string;
}

export interface Catalogue {
  of(principal: Principal): Promise<ListedModel[]>;
}

/** The models of one answer: clients of these APIs offer the list in a menu and do not page. */
const MODELS_MAX = 1000;
const WORKSPACES_MAX = 100;

interface CatalogueDeps extends Pick<GatewayDeps, "authorize"> {
  store: Store;
  /** The workspaces that these credentials can be used in. */
  workspacesOf(principal: Principal, limit: number): Promise<string[]>;
}

export function createCatalogue({ store, authorize, workspacesOf }: CatalogueDeps): Catalogue {
  return {
    async of(principal) {
      const listed: ListedModel[] = [];
      for (const workspace of await workspacesOf(principal, WORKSPACES_MAX)) {
        if (!(await authorize(principal, { workspace, kind: "model" }))) continue;
        const found = await store.resources.listNested(workspace, "model", MODELS_MAX - listed.length);
        for (const { name, createdAt, spec, deletedAt } of found) {
          if (deletedAt !== null || spec.enabled === false) continue;
          const { type } = (spec.runtime ?? {}) as { type?: string };
          listed.push({ id: `${workspace}/${name}`, createdAt, provider: providerOf(type, undefined).name });
        }
        if (listed.length >= MODELS_MAX) break;
      }
      return listed;
    },
  };
}

const LIST = /^\/v1\/models(?:\/([^?]+))?\/?(?:\?|$)/;

/** The model that a path of the list names: "" for the whole list, null when the path is not the list's. */
export function idInPath(path: string): string | null {
  const found = LIST.exec(path);
  if (!found) return null;
  try {
    return decodeURIComponent(found[1] ?? "");
  } catch {
    return found[1] ?? "";
  }
}

export function answerCatalogue(down: Downstream, style: CatalogueStyle, id: string, models: ListedModel[]): void {
  const { entry, list } = STYLES[style];
  const shown = models.filter((model) => id === "" || model.id === id);
  const [one] = shown;
  if (id === "") writeJson(down, 200, list(shown.map(entry)), []);
  else if (one) writeJson(down, 200, entry(one), []);
  else throw new GatewayError("WORKLOAD_NOT_FOUND", `There is no model "${id}" that these credentials can use.`);
}

interface Style {
  entry(model: ListedModel): { id: string };
  list(entries: { id: string }[]): object;
}

const STYLES: Record<CatalogueStyle, Style> = {
  openai: {
    entry: ({ id, createdAt, provider }) => ({
      ...{ id, object: "model", created: Math.floor(createdAt / SECOND_MS), owned_by: provider },
    }),
    list: (data) => ({ object: "list", data }),
  },
  anthropic: {
    entry: ({ id, createdAt }) => ({ type: "model", id, display_name: id, created_at: toIso(createdAt) }),
    list: (data) => ({ data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }),
  },
};
