/** What a sandbox takes along to another node: its record. Its files stay behind, so its owner has to allow that. */
import type { Sandbox } from "./kind.ts";

/** Null: it waits for its node. A fork does so too: the files that it starts from are there. */
export function sandboxElsewhere(sandbox: Sandbox): Record<string, unknown> | null {
  if (sandbox.spec.lifecycle?.onNodeLoss !== "recreate" || sandbox.state.fork) return null;
  const { instances: _instances, deployed: _deployed, compute: _compute, ...state } = sandbox.state;
  return state;
}
