/**
 * The MCP server of a third-party service, answered by the platform itself. Its tools call the service's API with the
 * connection's credentials. The credentials never leave the platform and are removed from every answer.
 */
import { PlatformError } from "../../contract/errors.ts";
import type { McpServer } from "../../lib/mcp/server.ts";
import type { Tool } from "../../lib/mcp/tool.ts";
import { OutboundError } from "../../lib/network/outbound-http.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { type AccessTokens, secretsOf } from "../integration-connection/access-token.ts";
import type { IntegrationConnection } from "../integration-connection/kind.ts";
import type { Platform } from "../port.ts";
import { findIntegration, type IntegrationDeclaration } from "./declarations.ts";
import { type RestCall, type RestTool, restCall } from "./rest-tool.ts";

export interface RestContext {
  deps: Platform;
  tokens: AccessTokens;
  connection: IntegrationConnection;
}

const CALL_MS = 60 * SECOND_MS;
/** Bytes of a service's answer, which is held in memory. A model cannot use more. */
const ANSWER_BYTES_MAX = 2 * 1024 * 1024;
const REASON_CHARS_MAX = 1000;

/** Returns null when the service has no MCP server here. */
export function restServer(integration: string, version: string): McpServer<RestContext> | null {
  const declaration = findIntegration(integration);
  if (!declaration?.tools) return null;
  const tools = declaration.tools.map((tool) => asTool(declaration, tool));
  return {
    info: { name: declaration.name, version },
    instructions: `Tools for ${declaration.title}, with the account that was connected.`,
    tools: () => tools,
    explain: (error) =>
      error instanceof PlatformError || error instanceof OutboundError || error instanceof ServiceRefusal
        ? error.message
        : "The call failed.",
  };
}

/** An error answer of the service; its message is passed on to the caller. */
class ServiceRefusal extends Error {}

const asTool = (declaration: IntegrationDeclaration, tool: RestTool): Tool<RestContext> => ({
  name: tool.name,
  description: tool.description,
  properties: tool.properties,
  required: tool.required ?? [],
  run: (context, args, signal) => perform(declaration, restCall(tool, args), context, signal),
});

async function perform(
  declaration: IntegrationDeclaration,
  call: RestCall,
  context: RestContext,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { config = {} } = context.connection.spec;
  const baseUrl = config.baseUrl ?? declaration.baseUrl;
  if (!baseUrl)
    throw new PlatformError(
      "bad_request",
      `Set config.baseUrl of the connection to your address of ${declaration.title}.`,
    );
  const tokenUrl = config.tokenUrl ?? declaration.tokenUrl;
  const secrets = secretsOf(context.connection, context.deps) as Record<string, string>;
  let accessToken = tokenUrl ? await context.tokens.get(context.connection, tokenUrl) : undefined;
  for (let attempt = 1; ; attempt += 1) {
    const known = { ...secrets, ...(accessToken ? { access_token: accessToken } : {}) };
    const answer = await context.deps.outbound.request(`${baseUrl.replace(/\/+$/, "")}${call.target}`, {
      method: call.method,
      headers: { ...headersFor(declaration, known), ...(call.body === undefined ? {} : JSON_BODY) },
      ...(call.body === undefined ? {} : { body: call.body }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
      bytesMax: ANSWER_BYTES_MAX,
    });
    // A service can revoke a token before it expires, so a 401 is retried once with a new token.
    if (answer.status === 401 && tokenUrl && attempt === 1) {
      accessToken = await context.tokens.get(context.connection, tokenUrl, accessToken);
      continue;
    }
    const text = without(answer.text, Object.values(known));
    if (answer.status < 200 || answer.status > 299) {
      const reason = text.slice(0, REASON_CHARS_MAX);
      throw new ServiceRefusal(`${declaration.title} answered ${answer.status}: ${reason}`);
    }
    return resultOf(text, answer.contentType);
  }
}

const JSON_BODY = { "content-type": "application/json" };

function headersFor({ headers = {} }: IntegrationDeclaration, known: Record<string, string>): Record<string, string> {
  const filled = Object.entries(headers).map(([name, value]) => [
    name,
    value.replace(/\{\{(\w+)\}\}/g, (_, word: string) => {
      if (known[word] === undefined) throw new PlatformError("unprocessable", `The connection holds no ${word}.`);
      return known[word].trim();
    }),
  ]);
  return { accept: "application/json, */*;q=0.5", "user-agent": "berth", ...Object.fromEntries(filled) };
}

/** Removes secrets from a service's answer, which may repeat the request. */
const without = (text: string, secrets: readonly string[]): string =>
  secrets.filter((secret) => secret.length > 3).reduce((clean, secret) => clean.replaceAll(secret, "********"), text);

function resultOf(text: string, contentType: string): Record<string, unknown> {
  if (!/\bjson\b/.test(contentType) || text === "") return { text };
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : { items: value };
  } catch {
    return { text };
  }
}
