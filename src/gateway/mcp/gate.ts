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
import { MESSAGE_BYTES_MAX, type RpcBody, type RpcMessage, rpcBodyOf } from "./rpc-body.ts";
import { MCP_PATH } from "./session.ts";
import { type CallerTasks, openedMessage, TASK_METHODS } from "./task-ids.ts";
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
    tasks: context.tasks.of(workload.uid, principal),
  });
  // Not every server looks at the method before it reads the body.
  if (body === null || (body.length === 0 && down.method !== "POST"))
    return { request: new GatedRequest(down, body, tools) };
  const checked = check(tools, down, body, context.tasks.of(workload.uid, principal));
  if ("refused" in checked) return checked;
  return { request: new GatedRequest(down, Buffer.from(checked.text), tools, checked.name) };
}

async function rulesFor(context: ServeContext, down: Downstream, call: Call): Promise<ToolRules> {
  const { workload } = call.admitted;
  const rules = workload.tools;
  if (!rules) throw new Error("a workload without rules is not checked");
  const active = workload.revisions?.active;
  const isUnpinned = rules.pins?.mode === "deploy" && rules.pins.pinned !== active && workload.door !== "platform";
  return isUnpinned ? pinned(context, down, call) : rules;
}

/** What is sent to the server instead of what the client sent. */
interface Checked {
  text: string;
  /** Of the task that the request is about, for the header that repeats it; null for none. */
  name: string | null;
}

function check(tools: ToolGate, down: Downstream, bytes: Buffer, tasks: CallerTasks): Checked | { refused: Refused } {
  let body: RpcBody;
  try {
    body = rpcBodyOf(bytes);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { refused: { status: error.status, body: failure(null, error) } };
  }
  const answers: RpcAnswer[] = [];
  const sent: RpcMessage[] = [];
  let status = 200;
  for (const message of body.messages) {
    const { method, id = null, params } = message;
    try {
      // Servers may choose the tool by these headers.
      const said = down.header("mcp-method");
      if (said !== undefined) mustMatch("Mcp-Method", said, method);
      const isCall = method === "tools/call";
      const named = isCall ? params?.name : params?.taskId;
      const name = down.header("mcp-name");
      if (name !== undefined && (isCall || TASK_METHODS.has(method))) mustMatch("Mcp-Name", name, named);
      if (isCall) tools.called(id, requireCallable(tools, named));
      if (TASK_METHODS.has(method)) tools.called(id, requireCallable(tools, tasks.open(named).tool));
      sent.push(openedMessage(message, tasks));
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      answers.push(failure(id as RpcId, error));
      if (!body.isBatch) status = error.status;
    }
  }
  const [first] = answers;
  if (first === undefined) {
    const isSame = sent.every((message, index) => message === body.messages[index]);
    const [{ method, params } = {}] = sent;
    return {
      text: isSame ? body.text : JSON.stringify(body.isBatch ? sent : sent[0]),
      name: TASK_METHODS.has(method) ? String(params?.taskId) : null,
    };
  }
  return { refused: { status, body: body.isBatch ? answers : first } };
}

function requireCallable(tools: ToolGate, tool: unknown): string {
  tools.requireCallable(tool);
  return String(tool);
}
