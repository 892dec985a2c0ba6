/** From a path to the operation it names, for paths that need no decoding. */
import type { Method } from "../contract/operation.ts";
import type { Implementation } from "../kinds/port.ts";

export const API_PREFIX = "/v0";

export interface Found {
  implementation: Implementation;
  params: Record<string, string>;
}

interface Node {
  fixed: Map<string, Node>;
  open: Node | null;
  ends: Map<string, Implementation>;
}

const node = (): Node => ({ fixed: new Map(), open: null, ends: new Map() });

export type OperationRoutes = (method: string, path: string) => Found | null;

/** A word beats a parameter, as in Fastify's router. */
export function createOperationRoutes(implementations: readonly Implementation[]): OperationRoutes {
  const root = node();
  for (const implementation of implementations) {
    const { method, path } = implementation.operation;
    endOf(root, path).set(method satisfies Method, implementation);
  }
  return (method, path) => {
    const words = path.split("/");
    const values: string[] = [];
    const implementation = walk(root, words, 1, method, values);
    if (!implementation) return null;
    const params: Record<string, string> = {};
    const names = implementation.operation.params;
    for (let at = 0; at < names.length; at += 1) params[names[at] as string] = values[at] as string;
    return { implementation, params };
  };
}

function endOf(root: Node, path: string): Map<string, Implementation> {
  let here = root;
  for (const word of path.split("/").slice(1)) {
    if (word.startsWith("{")) {
      here.open ??= node();
      here = here.open;
    } else {
      const next = here.fixed.get(word) ?? node();
      here.fixed.set(word, next);
      here = next;
    }
  }
  return here.ends;
}

function walk(here: Node, words: string[], at: number, method: string, values: string[]): Implementation | undefined {
  if (at === words.length) return here.ends.get(method);
  const word = words[at] as string;
  const fixed = here.fixed.get(word);
  const found = fixed && walk(fixed, words, at + 1, method, values);
  if (found || here.open === null || word === "") return found;
  const depth = values.length;
  values.push(word);
  const open = walk(here.open, words, at + 1, method, values);
  if (!open) values.length = depth;
  return open;
}
