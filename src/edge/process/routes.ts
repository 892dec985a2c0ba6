/**
 * Workloads that this process forwards to, as the owner told them, kept until the owner tells of a change. A workload
 * that the owner serves is never kept: the next request asks again.
 */
import type { Instance } from "../../contract/instance.ts";
import type { GatewayDeps, Target, Workload } from "../../gateway/deps.ts";
import type { FixedHeaders } from "../../http/header-rules.ts";
import { lowerName } from "../../http/http1/header-name.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import { type KnownRoute, OWNER, type SentWorkload } from "../messages.ts";
import { createPreviewTokens } from "./preview-tokens.ts";
import type { Ask } from "./questions.ts";

/** Cached workloads and addresses, to bound memory. A full cache is emptied. */
const ENTRIES_MAX = 20_000;
/** Longest path of a trigger that is kept: it is a client's text. The owner is asked for longer ones each time. */
const PATH_MAX = 256;
/** Addresses that somebody claims, and that may lead elsewhere without a change of the workload behind them. */
const CLAIMED: ReadonlySet<Target["by"]> = new Set(["preview", "domain", "trigger"]);

export interface Routes extends Pick<GatewayDeps, "resolve"> {
  instancesOf(uid: string): readonly Instance<Endpoint>[];
  /** Asks again, for a request whose instance cannot be reached. */
  refresh(workload: Workload): Promise<readonly Instance<Endpoint>[]>;
  /** null = all of them. */
  forget(uid: string | null): void;
  /** Forgets the addresses that are not a workload's own, and the tokens of previews. */
  forgetAddresses(): void;
}

/** What the owner told of a workload since its last change. */
interface Known {
  uid: string;
  instances: KnownRoute["instances"];
}

interface Address {
  known: Known;
  workload: Workload;
}

export function createRoutes(ask: Ask, clock: Clock): Routes {
  const entries = new Map<string, Known>();
  const own = new Map<string, Address>();
  /** Apart from addresses by name: clients choose hosts and paths, and must not push names out of the cache. */
  const claimed = new Map<string, Address>();
  const tokens = createPreviewTokens(ask, clock);

  /** An address that was read before the workload's last change is not used: `entries` has another object then. */
  function kept(target: Target, key: string | null): Workload | null {
    const found = key === null ? undefined : addressesFor(target).get(key);
    if (found === undefined || entries.get(found.known.uid) !== found.known) return null;
    const { preview } = found.workload;
    return preview === null || preview.untilMs > clock.now() ? found.workload : null;
  }

  const addressesFor = ({ by }: Target): Map<string, Address> => (CLAIMED.has(by) ? claimed : own);

  async function load(target: Target): Promise<Address | null> {
    const { value, fresh } = await ask("route", target);
    if (value === null) return null;
    const { uid } = value.workload;
    const known = (fresh ? entries.get(uid) : undefined) ?? { uid, instances: value.instances };
    const address = { known, workload: received(value.workload) };
    const key = keyOf(target);
    if (fresh) {
      put(entries, uid, known);
      if (key !== null) put(addressesFor(target), key, address);
    }
    return address;
  }

  function received(sent: SentWorkload): Workload {
    const { preview, workspace, uid } = sent;
    if (preview === null) return { ...sent, preview };
    return {
      ...sent,
      preview: {
        ...{ id: preview.id, public: preview.public, untilMs: preview.untilMs },
        requestHeaders: headersOf(preview.requestHeaders),
        responseHeaders: headersOf(preview.responseHeaders),
        checkToken: (token) => tokens.check(uid, { workspace, uid: preview.id }, token),
      },
    };
  }

  return {
    resolve(target) {
      return kept(target, keyOf(target)) ?? load(target).then((found) => found?.workload ?? OWNERS);
    },
    instancesOf: (uid) => entries.get(uid)?.instances ?? [],
    async refresh({ workspace, uid }) {
      return (await load({ by: "uid", workspace, uid }))?.known.instances ?? [];
    },
    forget(uid) {
      tokens.forget();
      if (uid !== null) return void entries.delete(uid);
      for (const cache of [entries, own, claimed]) cache.clear();
    },
    forgetAddresses() {
      tokens.forget();
      claimed.clear();
    },
  };
}

function put<T>(cache: Map<string, T>, key: string, value: T): void {
  if (cache.size >= ENTRIES_MAX) cache.clear();
  cache.set(key, value);
}

/** Null for an address that is asked for each time. */
function keyOf(target: Target): string | null {
  if (target.by !== "trigger") return JSON.stringify(Object.values(target));
  const [path = ""] = target.path.split("?", 1);
  return path.length > PATH_MAX ? null : JSON.stringify([target.workspace, path]);
}

const headersOf = (list: readonly string[]): FixedHeaders | null =>
  list.length === 0 ? null : { list, names: new Set(list.filter((_, i) => i % 2 === 0).map(lowerName)) };

/** Stands for every workload whose requests the owner serves, and for addresses without a workload. */
const OWNERS: Workload = {
  kind: "sandbox",
  uid: "",
  workspace: "",
  name: "",
  public: false,
  enabled: false,
  revisions: null,
  elsewhere: OWNER,
  door: "api",
  triggers: [],
  preview: null,
};
