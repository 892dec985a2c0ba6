/** Joins what belongs to the platform with the machine of this server. */
import type { Deps, Node, Platform } from "../kinds/port.ts";

/** Handlers get `platform`, in which the machine stands only behind `here`; reconcilers and tasks get `deps`. */
export function joinNode(common: Omit<Platform, "here">, node: Node): { platform: Platform; deps: Deps } {
  const deps: Deps = {
    ...common,
    ...node,
    get here() {
      return deps;
    },
  };
  return { platform: { ...common, here: deps }, deps };
}
