/** Everything that an installation shows of itself to its admin, by address: written down by one version, read by later ones. */

import { EVERY_KIND } from "../every-kind.ts";
import type { Answer, CallOptions } from "../platform.ts";

type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>;

export type Shown = Record<string, Answer["body"]>;

/** Where the secrets of a resource are shown to who asks for them. */
const SHOWING_SECRETS = new Set(["agent", "function", "job", "sandbox"]);

const PATHS = [
  ...new Set(EVERY_KIND.map(({ collection }) => collection)),
  ...EVERY_KIND.flatMap(({ kind, collection, name }) =>
    name === undefined ? [] : [`${collection}/${name}${SHOWING_SECRETS.has(kind) ? "?show_secrets=true" : ""}`],
  ),
  "/sandboxes/box/schedule-executions",
  "/agents/speaker/threads",
  "/agents/speaker/threads/talk",
  "/jobs/batch/executions",
  "/workspaces",
  "/accounts",
  "/users",
  "/service_accounts",
  "/api_keys",
  "/quotas",
];

export async function lookAt(call: Call): Promise<Shown> {
  const shown: Shown = {};
  for (const path of PATHS) {
    const { status, body } = await call("GET", path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    shown[path] = body;
  }
  return shown;
}
