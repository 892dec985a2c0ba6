/** Which tools of an MCP server one caller sees and calls. */
import { EVERYBODY, matchesAny, type ToolRules } from "../../contract/tools/tool-rules.ts";
import { afterListing, isApproved, type ListedTool, listedTool, TOOLS_MAX } from "../../contract/tools/tool-state.ts";
import { RPC, RpcError } from "../../lib/mcp/wire.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { Principal } from "../deps.ts";
import { type CallerTasks, signedMessage } from "./task-ids.ts";

export interface ToolGate {
  /** Throws when this caller may not call the tool. */
  requireCallable(tool: unknown): void;
  /** The definitions that this caller may see. */
  visible(definitions: readonly unknown[]): unknown[];
  /** Notes which tool a request calls. */
  called(request: unknown, tool: string): void;
  /** A message of the server with the ids of tasks that this caller gets. */
  signed(message: Record<string, unknown>): Record<string, unknown>;
}

export interface GateOf {
  rules: ToolRules;
  principal: Principal | null;
  /** Name of the function, for the sentence that says how to approve. */
  name: string;
  /** Called with tools that the server lists and that change what is recorded about it. */
  seen(listed: readonly ListedTool[]): void;
  tasks: CallerTasks;
}

export function toolGate({ rules, principal, name, seen, tasks }: GateOf): ToolGate {
  const calls = new Map<unknown, string>();
  const allow = allowedTo(rules, principal);
  const isAllowed = (tool: string): boolean => allow === null || matchesAny(allow, tool);
  const { pins } = rules;
  return {
    called: (request, tool) => void calls.set(request, tool),
    signed: (message) => signedMessage(message, tasks, calls.get(message.id) ?? null),
    requireCallable(tool) {
      if (typeof tool !== "string" || !isAllowed(tool)) throw unknownTool(tool);
      if (pins === null) return;
      const isPinned = ownValue(pins.approved, tool) !== undefined;
      const isWithheld = ownValue(pins.withheld, tool) !== undefined;
      if (!isPinned && !isWithheld) throw unknownTool(tool);
      if (!isWithheld) return;
      const why = isPinned ? "its definition has changed since it was approved" : "nobody has approved it yet";
      throw new RpcError(RPC.invalidParams, withheldSentence(tool, why, name), { data: { reason: "tool_withheld" } });
    },
    visible(definitions) {
      const listed = definitions
        .slice(0, TOOLS_MAX)
        .map((definition) => ({ definition, tool: listedTool(definition) }));
      if (pins !== null) {
        const tools = listed.flatMap(({ tool }) => tool ?? []);
        if (afterListing(pins, tools, 0) !== null) seen(tools);
      }
      return listed.flatMap(({ definition, tool }) =>
        tool !== null && isAllowed(tool.name) && (pins === null || isApproved(pins, tool)) ? [definition] : [],
      );
    },
  };
}

const withheldSentence = (tool: string, why: string, name: string): string =>
  `The tool ${JSON.stringify(tool)} is withheld: ${why}. An admin looks at it with \`berth function tools ${name}\` and approves it, by the hash that stands there, with \`berth function approve-tools ${name} --data\`.`;

const unknownTool = (tool: unknown): RpcError =>
  new RpcError(RPC.invalidParams, `There is no tool ${JSON.stringify(tool)?.slice(0, 140)}.`);

/** Null = all tools. An entry for everybody counts only for callers whom no other entry names. */
function allowedTo({ access }: ToolRules, principal: Principal | null): readonly string[] | null {
  if (access === null) return null;
  const ids = [principal?.keyId, principal?.id].filter((id) => id !== undefined && id !== null && id !== "");
  const own = access.filter(({ callers }) => callers.some((one) => one !== EVERYBODY && ids.includes(one)));
  const entries = own.length > 0 ? own : access.filter(({ callers }) => callers.includes(EVERYBODY));
  return entries.flatMap(({ allow }) => allow);
}
