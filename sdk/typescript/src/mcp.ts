/** A small MCP client over streamable HTTP: the tools of a function, or of a sandbox. */
import { type Berth, defaultBerth, type WithBerth } from "./berth.ts";
import type { CallOptions } from "./core/call.ts";
import { BerthError, isJson } from "./core/errors.ts";
import { eventsOf } from "./core/lines.ts";

const PROTOCOL = "2025-11-25";
const CLIENT = { name: "berth-sdk", version: "0.1.0" };

export interface Tool {
  name: string;
  description?: string;
  inputSchema: Record<string, unknown>;
}

export interface ToolResult {
  content: { type: string; text?: string; [member: string]: unknown }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  /** The texts of the content, joined with newlines. */
  text: string;
}

interface Session {
  id: string | null;
}

interface Reply {
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

export class McpServer {
  readonly #berth: Berth;
  readonly #find: () => Promise<string>;
  #session: Promise<Session> | null = null;
  #ids = 0;

  /** The MCP server that the function of this name is. */
  constructor(functionName: string, { berth = defaultBerth(), address }: WithBerth & { address?: string } = {}) {
    this.#berth = berth;
    this.#find = async () => address ?? berth.address("functions", functionName);
  }

  /** Every tool, page after page. */
  async list(options: CallOptions = {}): Promise<Tool[]> {
    const all: Tool[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = (await this.request("tools/list", cursor ? { cursor } : {}, options)) as {
        tools: Tool[];
        nextCursor?: string;
      };
      all.push(...page.tools);
      if (!page.nextCursor || page.nextCursor === cursor) return all;
      cursor = page.nextCursor;
    }
  }

  /** Calls a tool. An error of the tool itself is a result with `isError`. */
  async call(
    name: string,
    args: Readonly<Record<string, unknown>> = {},
    options: CallOptions = {},
  ): Promise<ToolResult> {
    const result = (await this.request("tools/call", { name, arguments: args }, options)) as Omit<ToolResult, "text">;
    const text = (result.content ?? []).flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("\n");
    return { ...result, text };
  }

  /** Any request of the protocol. A session that the server has ended is begun anew, once. */
  async request(method: string, params: Record<string, unknown> = {}, options: CallOptions = {}): Promise<unknown> {
    const session = await this.#open(options);
    try {
      return await this.#send(method, params, session, options);
    } catch (error) {
      if (!(error instanceof BerthError && error.status === 404 && session.id !== null)) throw error;
      this.#session = null;
      return this.#send(method, params, await this.#open(options), options);
    }
  }

  #open(options: CallOptions): Promise<Session> {
    this.#session ??= this.#initialize(options).catch((error: unknown) => {
      this.#session = null;
      throw error;
    });
    return this.#session;
  }

  async #initialize(options: CallOptions): Promise<Session> {
    const session: Session = { id: null };
    await this.#send(
      "initialize",
      { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: CLIENT },
      session,
      options,
    );
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" }, session, options, async () => null);
    return session;
  }

  async #send(
    method: string,
    params: Record<string, unknown>,
    session: Session,
    options: CallOptions,
  ): Promise<unknown> {
    this.#ids += 1;
    const id = this.#ids;
    const { result, error } = await this.#post({ jsonrpc: "2.0", id, method, params }, session, options, (response) =>
      replyIn(response, id, options.signal),
    );
    if (!error) return result;
    throw new BerthError({ code: `mcp_${error.code}`, message: error.message, body: error });
  }

  async #post<Result>(
    body: unknown,
    session: Session,
    options: CallOptions,
    read: (response: Response) => Promise<Result>,
  ): Promise<Result> {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": PROTOCOL,
      ...(session.id === null ? {} : { "mcp-session-id": session.id }),
    };
    const request = { ...options, method: "POST", path: "/mcp", headers, body: JSON.stringify(body) };
    return this.#berth.sendToWorkload(await this.#find(), request, (response) => {
      session.id = response.headers.get("mcp-session-id") ?? session.id;
      return read(response);
    });
  }
}

/** The reply to a request, as JSON or among the events of a stream. */
async function replyIn(response: Response, id: number, signal: AbortSignal | undefined): Promise<Reply> {
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("text/event-stream")) return (await response.json()) as Reply;
  for await (const data of eventsOf(response, signal)) {
    const message: unknown = JSON.parse(data);
    if (isJson(message) && message.id === id) return message;
  }
  throw new BerthError({ code: "broken_stream", message: "The MCP server ended the stream without a reply." });
}
