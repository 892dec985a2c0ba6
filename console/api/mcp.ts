/** A client of an MCP server over streamable HTTP, with as much of the protocol as an inspector of tools needs. */
import { bounded, textOf } from "../lib/bounded.ts";
import { eventsOf } from "../lib/events.ts";
import { isObject, type Json, memberAt, textAt } from "../lib/members.ts";
import { ApiFailure, failureOf } from "./failure.ts";
import { askWorkload, type Workload } from "./workload.ts";

export interface Tool {
  name: string;
  title: string;
  description: string;
  inputSchema: unknown;
}

export interface ToolResult {
  isError: boolean;
  /** Each part of the result as text. */
  parts: readonly string[];
}

const PROTOCOL = "2025-11-25";
/** The largest message that the platform itself carries. */
const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
/** A server that never ends its list is not asked on. */
const PAGES_MAX = 20;
const TOOLS_MAX = 1000;

export interface McpClient {
  tools(signal?: AbortSignal): Promise<readonly Tool[]>;
  call(name: string, given: Json, signal?: AbortSignal): Promise<ToolResult>;
  /** Ends the session, if the server made one. */
  close(): void;
}

export function createMcpClient(workload: Workload): McpClient {
  let session: Promise<Readonly<Record<string, string>>> | null = null;
  let lastId = 0;

  async function post(message: Json, headers: Readonly<Record<string, string>>, signal?: AbortSignal) {
    const accept = "application/json, text/event-stream";
    const sent = { method: "POST", path: "/mcp", body: message, headers: { accept, ...headers } };
    const response = await askWorkload(workload, { ...sent, ...(signal ? { signal } : {}) });
    if (!response.ok) throw await failureOf(response);
    return response;
  }

  async function ask(method: string, params: Json, headers: Readonly<Record<string, string>>, signal?: AbortSignal) {
    lastId += 1;
    const id = lastId;
    const response = await post({ jsonrpc: "2.0", id, method, params }, headers, signal);
    return { response, result: resultOf(await answerTo(id, response)) };
  }

  async function begin(): Promise<Readonly<Record<string, string>>> {
    const clientInfo = { name: "console", version: "1.0.0" };
    const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo };
    const { response, result } = await ask("initialize", params, {});
    const id = response.headers.get("mcp-session-id");
    const headers = {
      "mcp-protocol-version": textAt(result, "protocolVersion") || PROTOCOL,
      ...(id === null ? {} : { "mcp-session-id": id }),
    };
    await post({ jsonrpc: "2.0", method: "notifications/initialized" }, headers);
    return headers;
  }

  async function inSession(method: string, params: Json, signal?: AbortSignal): Promise<unknown> {
    session ??= begin();
    try {
      return (await ask(method, params, await session, signal)).result;
    } catch (error) {
      // A session that is over is answered with 404; after a failed beginning the next request begins again, too.
      const isOver = error instanceof ApiFailure && error.status === 404;
      const begun = await session.catch(() => null);
      if (begun === null || isOver) session = null;
      if (!isOver || begun?.["mcp-session-id"] === undefined) throw error;
      session = begin();
      return (await ask(method, params, await session, signal)).result;
    }
  }

  return {
    async tools(signal) {
      const tools: Tool[] = [];
      let cursor = "";
      for (let page = 0; page < PAGES_MAX && tools.length < TOOLS_MAX; page += 1) {
        const result = await inSession("tools/list", cursor === "" ? {} : { cursor }, signal);
        const listed = memberAt(result, "tools");
        if (Array.isArray(listed)) tools.push(...listed.map(toolOf));
        cursor = textAt(result, "nextCursor");
        if (cursor === "") break;
      }
      return tools.slice(0, TOOLS_MAX);
    },
    call: async (name, given, signal) =>
      toolResultOf(await inSession("tools/call", { name, arguments: given }, signal)),
    close() {
      void session?.then(
        (headers) => {
          if (headers["mcp-session-id"] !== undefined)
            return askWorkload(workload, { method: "DELETE", path: "/mcp", headers }).catch(() => {}); // the server ends unused sessions itself
        },
        () => {},
      );
    },
  };
}

/** The message that answers a request: the body itself, or one event of a stream. */
async function answerTo(id: number, response: Response): Promise<unknown> {
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream"))
    return JSON.parse(await textOf(response, MESSAGE_BYTES_MAX)) as unknown;
  if (response.body !== null)
    for await (const { data } of eventsOf(bounded(response.body, MESSAGE_BYTES_MAX))) {
      if (data === "") continue;
      const message = JSON.parse(data) as unknown;
      if (memberAt(message, "id") === id && memberAt(message, "method") === undefined) return message;
    }
  throw new Error("The server ended the stream without an answer.");
}

function resultOf(message: unknown): unknown {
  const error = memberAt(message, "error");
  if (isObject(error)) throw new ApiFailure(200, `rpc_${textAt(error, "code")}`, textAt(error, "message"), "");
  return memberAt(message, "result");
}

const toolOf = (tool: unknown): Tool => ({
  name: textAt(tool, "name"),
  title: textAt(tool, "title") || textAt(tool, "annotations.title"),
  description: textAt(tool, "description"),
  inputSchema: memberAt(tool, "inputSchema"),
});

function toolResultOf(result: unknown): ToolResult {
  const content = memberAt(result, "content");
  const structured = memberAt(result, "structuredContent");
  return {
    isError: memberAt(result, "isError") === true,
    parts: [
      ...(Array.isArray(content) ? content.map(partText) : []),
      ...(structured === undefined ? [] : [JSON.stringify(structured, null, 2)]),
    ],
  };
}

/** Pictures and sounds are named, not shown: a server's bytes are no part of this page. */
function partText(part: unknown): string {
  const [type, data] = [textAt(part, "type"), textAt(part, "data")];
  if (type === "text") return textAt(part, "text");
  return data === ""
    ? JSON.stringify(part, null, 2)
    : `${textAt(part, "mimeType") || type}, ${data.length} letters of base64`;
}
