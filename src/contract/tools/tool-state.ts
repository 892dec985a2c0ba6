/** What is recorded about the tools of a pinned MCP server, as pure steps from one record to the next. */
import { createHash } from "node:crypto";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { ownValue } from "../../lib/own-value.ts";
import { isRecord } from "../../lib/untrusted-json.ts";

export interface ToolState {
  /** Tool name -> hashes of the definitions that clients may see. */
  approved: Readonly<Record<string, readonly string[]>>;
  /** Tool name -> the definition that was listed and not approved. */
  withheld: Readonly<Record<string, WithheldTool>>;
  /** The revision whose definitions were approved by its deployment; null before the first use. */
  pinned: string | null;
}

export interface WithheldTool {
  hash: string;
  /** Canonical JSON, shortened. */
  definition: string;
  /** When it was first listed, in milliseconds. */
  since: number;
}

export interface ListedTool {
  name: string;
  hash: string;
  definition: string;
}

/** A server with more tools has the rest withheld: a client's context would not hold them. */
export const TOOLS_MAX = 512;
const NAME_MAX_LENGTH = 128;
/** Several revisions of a server may answer at a time, each with its own definitions. */
const HASHES_MAX = 4;
/** A person reads the beginning of a definition; the hash covers all of it. */
const DEFINITION_KEPT_LENGTH = 4096;
/** New tools that are written down, and definitions that are kept. */
const WITHHELD_MAX = 64;

const NONE: ToolState = { approved: {}, withheld: {}, pinned: null };

export const stateOfTools = (state: Record<string, unknown>): ToolState =>
  isRecord(state.tools) ? { ...NONE, ...(state.tools as Partial<ToolState>) } : NONE;

/** The hash covers every member of the definition: models and people decide by all of them. Null for what is no tool. */
export function listedTool(definition: unknown): ListedTool | null {
  if (!isRecord(definition) || typeof definition.name !== "string") return null;
  const { name } = definition;
  if (name === "" || name.length > NAME_MAX_LENGTH) return null;
  const text = canonicalJson(definition);
  return { name, hash: createHash("sha256").update(text).digest("base64url"), definition: text };
}

export const isApproved = ({ approved }: Pick<ToolState, "approved">, { name, hash }: ListedTool): boolean =>
  ownValue(approved, name)?.includes(hash) === true;

/** The record after a server has listed these tools; null when nothing is new. */
export function afterListing(state: ToolState, listed: readonly ListedTool[], nowMs: number): ToolState | null {
  const withheld = new Map(Object.entries(state.withheld));
  let changed = false;
  for (const tool of listed) {
    const { name, hash } = tool;
    const known = withheld.get(name);
    if (isApproved(state, tool)) changed = withheld.delete(name) || changed;
    if (isApproved(state, tool) || known?.hash === hash) continue;
    // Clients could call a tool that is approved and not written down here, so it is, if need be without its definition.
    const isShown = known === undefined ? withheld.size < WITHHELD_MAX : known.definition !== "";
    if (!isShown && !Object.hasOwn(state.approved, name)) continue;
    const definition = isShown ? tool.definition.slice(0, DEFINITION_KEPT_LENGTH) : "";
    withheld.set(name, { hash, definition, since: nowMs });
    changed = true;
  }
  return changed ? { ...state, withheld: Object.fromEntries(withheld) } : null;
}

/** The record after these tools of a revision were approved by its deployment: they replace those of earlier ones. */
export function afterDeployment(listed: readonly ListedTool[], revision: string): ToolState {
  const approved = new Map<string, string[]>();
  for (const { name, hash } of listed.slice(0, TOOLS_MAX)) approved.set(name, [hash]);
  return { approved: Object.fromEntries(approved), withheld: {}, pinned: revision };
}

/** The record after an admin approved the withheld definitions with these names and hashes. */
export function afterApproval(state: ToolState, chosen: readonly Pick<ListedTool, "name" | "hash">[]): ToolState {
  const approved = new Map(Object.entries(state.approved));
  const withheld = new Map(Object.entries(state.withheld));
  for (const { name, hash } of chosen) {
    approved.set(name, [hash, ...(approved.get(name) ?? []).filter((one) => one !== hash)].slice(0, HASHES_MAX));
    withheld.delete(name);
  }
  return { ...state, approved: Object.fromEntries(approved), withheld: Object.fromEntries(withheld) };
}
