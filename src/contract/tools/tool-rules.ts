/**
 * `spec.tools` and `spec.servers` of a function: which tools of an MCP server reach clients. Pins record the hash of each
 * tool's definition, and a definition that differs is withheld until an admin approves it. Access lists the tools of each
 * caller. A function with `servers` has no code: it serves the tools of other functions under prefixed names.
 */
import { z } from "zod";
import { pathPattern } from "../../lib/path-pattern.ts";
import * as fields from "../fields.ts";
import { stateOfTools, type ToolState } from "./tool-state.ts";

const PATTERNS_MAX = 128;
const PATTERN_MAX_LENGTH = 128;
const ENTRIES_MAX = 64;
/** Each client session opens a session at every server, and the session id carries them all. */
const SERVERS_MAX = 16;

/** Whoever is named by no other entry. */
export const EVERYBODY = "*";

export const PIN_MODES = ["deploy", "approval"] as const;
export type PinMode = (typeof PIN_MODES)[number];

const patterns = z
  .array(
    z
      .string()
      .min(1)
      .max(PATTERN_MAX_LENGTH)
      .refine((text) => pathPattern(text) !== null, "must be a name, in which `*` stands for any characters"),
  )
  .max(PATTERNS_MAX);

const access = z.strictObject({
  callers: z
    .array(z.string().min(1).max(PATTERN_MAX_LENGTH))
    .min(1)
    .max(ENTRIES_MAX)
    .describe("Ids of API keys, users, service accounts or workloads; `*` is everybody whom no entry names."),
  allow: patterns.describe("Names of tools; `*` stands for any characters."),
});

export const tools = z
  .strictObject({
    pins: z
      .enum(PIN_MODES)
      .optional()
      .describe(
        "Withholds tools whose definition differs from the approved one. `deploy`: the definitions of each deployed revision are approved when it is first used. `approval`: every definition needs an approval. Default: nothing is withheld.",
      ),
    access: z
      .array(access)
      .max(ENTRIES_MAX)
      .optional()
      .describe("The tools that each caller sees and calls. Absent: everybody who may call the server has all tools."),
  })
  .describe("Which tools reach clients.");

const server = z.strictObject({
  name: z.string().min(1).max(fields.NAME_MAX).describe("A function of the workspace."),
  prefix: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/, "must be up to 63 letters, digits, hyphens and underscores")
    .optional()
    .describe("Its tools are named `{prefix}_{tool}`. Default: the function's name."),
  allow: patterns.optional().describe("Its own names of the tools that are served; absent = all."),
});

export const servers = z
  .array(server)
  .max(SERVERS_MAX)
  .superRefine((list, context) => {
    const prefixes = list.map(prefixOf);
    for (const [index, one] of prefixes.entries())
      if (prefixes.some((other, at) => at !== index && `${one}_`.startsWith(`${other}_`)))
        context.addIssue({ code: "custom", path: [index, "prefix"], message: "must not begin with another prefix" });
  })
  .describe("Functions whose tools this one serves under prefixed names; it then has no code of its own.");

export interface ToolAccess {
  callers: readonly string[];
  allow: readonly string[];
}

export interface ToolRules {
  /** Null where definitions are not pinned. */
  pins: (ToolState & { mode: PinMode }) | null;
  access: readonly ToolAccess[] | null;
}

export interface ServedServer {
  name: string;
  prefix: string;
  allow: readonly string[] | null;
}

const prefixOf = ({ name, prefix }: z.output<typeof server>): string => prefix ?? name;

type Described = { kind: string; spec: Record<string, unknown>; state: Record<string, unknown> };

/** Returns null for a function whose tools all reach everybody who may call it. */
export function toolRulesOf({ kind, spec, state }: Described): ToolRules | null {
  if (kind !== "function") return null;
  const { pins, access: entries } = (spec.tools ?? {}) as z.output<typeof tools>;
  if (pins === undefined && entries === undefined) return null;
  return { pins: pins === undefined ? null : { ...stateOfTools(state), mode: pins }, access: entries ?? null };
}

/** The functions that a function serves; null for one with a server of its own. */
export function serversOf({ kind, spec }: Pick<Described, "kind" | "spec">): ServedServer[] | null {
  const list = spec.servers as z.output<typeof servers> | undefined;
  if (kind !== "function" || !list || list.length === 0) return null;
  return list.map((one) => ({ name: one.name, prefix: prefixOf(one), allow: one.allow ?? null }));
}

export const matchesAny = (allow: readonly string[], tool: string): boolean =>
  allow.some((pattern) => pathPattern(pattern)?.test(tool) === true);
