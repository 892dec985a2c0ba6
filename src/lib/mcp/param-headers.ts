/**
 * Tool arguments that clients of the sessionless protocol repeat as `Mcp-Param-…` headers, so that a proxy can route by
 * them without reading the body. A tool's schema lists these arguments; header and body have to agree.
 */
import { type HeaderOf, mustMatch, RPC, RpcError } from "./wire.ts";

/** Argument name -> header name after `Mcp-Param-`. */
export type ParamHeaders = ReadonlyMap<string, string>;

const ANNOTATION = "x-mcp-header";

export function paramHeadersOf(inputSchema: unknown): ParamHeaders {
  const { properties = {} } = (inputSchema ?? {}) as { properties?: Record<string, Record<string, unknown> | null> };
  return new Map(
    Object.entries(properties).flatMap(([name, schema]) => {
      const header = schema?.[ANNOTATION];
      return typeof header === "string" ? [[name, header] as const] : [];
    }),
  );
}

export function mustAgree(headers: ParamHeaders, params: Record<string, unknown> | undefined, header: HeaderOf): void {
  const given = (params?.arguments ?? {}) as Record<string, unknown>;
  for (const [name, word] of headers) {
    const field = `Mcp-Param-${word}`;
    const said = header(field.toLowerCase());
    const value = given[name] ?? undefined;
    if (value !== undefined) mustMatch(field, said, String(value));
    else if (said !== undefined)
      throw new RpcError(RPC.headerMismatch, `Header mismatch: ${field} is there, and the argument "${name}" is not.`);
  }
}
