/**
 * Workloads that this process forwards to, as the owner told them, kept until the owner tells of a change. A workload
 * that the owner serves is never kept: the next request asks again.
 */
import type { Instance } from "../../contract/instance.ts";
import type { GatewayDeps, Target, Workload } from "../../gateway/deps.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import { type KnownRoute, OWNER } from "../messages.ts";
import type { Ask } from "./questions.ts";

/** Cached workloads and addresses, to bound memory. A full cache is emptied. */
const ENTRIES_MAX = 20_000;

export interface Routes extends Pick<GatewayDeps, "resolve"> {
  instancesOf(uid: string): readonly Instance<Endpoint>[];
  /** Asks again, for a request whose instance cannot be reached. */
  refresh(workload: Workload): Promise<readonly Instance<Endpoint>[]>;
  /** null = all of them. */
  forget(uid: string | null): void;
}

export function createRoutes(ask: Ask): Routes {
  const entries = new Map<string, KnownRoute>();
  const uids = new Map<string, string>();

  async function load(target: Target, key: string | null): Promise<KnownRoute | null> {
    const { value, fresh } = await ask("route", target);
    if (value === null || !fresh) return value;
    if (uids.size >= ENTRIES_MAX || entries.size >= ENTRIES_MAX) {
      entries.clear();
      uids.clear();
    }
    entries.set(value.workload.uid, value);
    if (key !== null) uids.set(key, value.workload.uid);
    return value;
  }

  return {
    resolve(target) {
      const key = keyOf(target);
      const uid = key === null ? undefined : uids.get(key);
      const known = uid === undefined ? undefined : entries.get(uid);
      return known ? known.workload : load(target, key).then((found) => found?.workload ?? OWNERS);
    },
    instancesOf: (uid) => entries.get(uid)?.instances ?? [],
    async refresh({ workspace, uid }) {
      const target: Target = { by: "uid", workspace, uid };
      return (await load(target, keyOf(target)))?.instances ?? [];
    },
    forget(uid) {
      if (uid !== null) entries.delete(uid);
      else {
        entries.clear();
        uids.clear();
      }
    },
  };
}

/**
 * Null for an address that is asked for each time. The path of a trigger is a client's text of any length, and leads
 * elsewhere when another workload claims a longer part of it: the workload that had it does not change by that.
 */
const keyOf = (target: Target): string | null =>
  target.by === "trigger" ? null : JSON.stringify(Object.values(target));

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
