/** Keeps the rules of `policies.ts` up to date. */
import { execFileSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { LIBRARIES, PATH } from "../parts/folder.ts";
import { type NetworkPod, type Policy, rulesFor } from "./policies.ts";

const LOOK_MS = 200;

interface Namespace {
  metadata: { name: string; labels?: Record<string, string> };
}

export interface NetworkPlugin {
  /** Resolves when rules made of what the API server has now are in force. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** `list` answers the objects below a path of the API. */
export function startNetworkPlugin(list: <T>(path: string) => Promise<T[]>): NetworkPlugin {
  const end = new AbortController();
  let current = "";
  const update = async (): Promise<void> => {
    const [pods, policies, namespaces] = await Promise.all([
      list<NetworkPod>("/api/v1/pods"),
      list<Policy>("/apis/networking.k8s.io/v1/networkpolicies"),
      list<Namespace>("/api/v1/namespaces"),
    ]);
    const labels = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
    const rules = rulesFor({ pods, policies, namespaces: labels });
    if (rules === current || end.signal.aborted) return;
    execFileSync("nft", ["-f", "-"], { input: rules, env: { PATH, LD_LIBRARY_PATH: LIBRARIES } });
    current = rules;
  };
  const running = (async () => {
    while (!end.signal.aborted) {
      // An API server that is away changes nothing: the rules stay.
      await update().catch((error: Error) => {
        if ("status" in error) console.error(error);
      });
      await delay(LOOK_MS, undefined, { signal: end.signal }).catch(() => {});
    }
  })();
  return {
    settled: update,
    stop: async () => {
      end.abort();
      await running;
    },
  };
}
