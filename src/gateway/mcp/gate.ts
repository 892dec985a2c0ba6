/** The way of a request to an MCP server whose tools are checked, before the server gets it. */
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { ToolRules } from "../../contract/tools/tool-rules.ts";
import type { Downstream } from "../../http/downstream.ts";
import { failure, mustMatch, type RpcAnswer, RpcError, type RpcId } from "../../lib/mcp/wire.ts";
import type { Call, ServeContext } from "../call.ts";
import type { Workload } from "../deps.ts";
import { readBody } from "../request-body.ts";
import { GatedRequest } from "./gated-request.ts";
import { pinned } from "./pinning.ts";
import { MESSAGE_BYTES_MAX, type RpcBody, rpcBodyOf } from "./rpc-body.ts";
import { MCP_PATH } from "./session.ts";
import { type ToolGate, toolGate } from "./tool-gate.ts";

export interface Refused {
  status: number;
  body: RpcAnswer | RpcAnswer[];
}

/** Only one path and one transport are checked, so a server with rules answers at no other. */
export function requireChecked({ workload, path }: { workload: Workload; path: string }, down: Downstream): void {
  if (down.upgrade !== null || !MCP_PATH.test(path))
    throw new GatewayError("POLICY_VIOLATION", "The tools of this server are checked: it answers at /mcp only.", {
      action: `Send the request to /mcp, or remove spec.tools from the function ${workload.name}.`,
    });
}

/** The request as the server gets it, or the refusal that the client gets. */
export async function gate(
  context: ServeContext,
  down: Downstream,
  call: Call,
): Promise<{ request: Downstream } | { refused: Refused }> {
  requireChecked(call.admitted, down);
  const hasBody = down.bodyFraming !== "none";
  const body = hasBody ? await readBody(down, MESSAGE_BYTES_MAX) : null;
  const rules = await rulesFor(context, down, call);
  const { principal, workload } = call.admitted;
  const tools = toolGate({
    ...{ rules, principal, name: workload.name },
    seen: (listed) => context.deps.toolsListed?.(workload, listed),
  });
  // Not every server looks at the method before it reads the body.
  if (body === null || (body.length === 0 && down.method !== "POST"))
    return { request: new GatedRequest(down, body, tools) };
  const checked = check(tools, down, body);
  return "refused" in checked ? checked : { request: new GatedRequest(down, Buffer.from(checked.text), tools) };
}

async function rulesFor(context: ServeContext, down: Downstream, call: Call): Promise<ToolRules> {
  const { workload } = call.admitted;
  const rules = workload.tools;
  if (!rules) throw new Error("a workload without rules is not checked");
  const active = workload.revisions?.active;
  const isUnpinned = rules.pins?.mode === "deploy" && rules.pins.pinned !== active && workload.door !== "platform";
  return isUnpinned ? pinned(context, down, call) : rules;
}

function check(tools: ToolGate, down: Downstream, bytes: Buffer): RpcBody | { refused: Refused } {
  let body: RpcBody;
  try {
    body = rpcBodyOf(bytes);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { refused: { status: error.status, body: failure(null, error) } };
  }
  const answers: RpcAnswer[] = [];
  let status = 200;
  for (const { method, id = null, params } of body.messages) {
    try {
      // Servers may choose the tool by these headers.
      const said = down.header("mcp-method");
      if (said !== undefined) mustMatch("Mcp-Method", said, method);
      if (method !== "tools/call") continue;
      const name = down.header("mcp-name");
      if (name !== undefined) mustMatch("Mcp-Name", name, params?.name);
      tools.requireCallable(params?.name);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      answers.push(failure(id as RpcId, error));
      if (!body.isBatch) status = error.status;
    }
  }
  const [first] = answers;
  if (first === undefined) return body;
  return { refused: { status, body: body.isBatch ? answers : first } };
}
