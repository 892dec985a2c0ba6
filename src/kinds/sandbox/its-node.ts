import type { Implementation } from "../port.ts";
import { sandbox } from "./kind.ts";

/** The files and processes of a sandbox are on its node. */
export const nodeOfSandbox: NonNullable<Implementation["node"]> = async ({ workspace, params }, { store }) => {
  const scope = { workspace, kind: sandbox.name, parent: "" };
  return (await store.resources.get(scope, params.sandboxName ?? ""))?.node ?? null;
};
