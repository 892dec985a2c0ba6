/** A tool that is one call of a service's HTTP API, written as data. */
import { PlatformError } from "../../contract/errors.ts";
import type { PropertySchema } from "../../lib/mcp/tool.ts";

export interface RestTool {
  name: string;
  description: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path below the service's base URL; {name} is replaced by an argument. */
  path: string;
  /** Query parameters of every call. */
  query?: Readonly<Record<string, string>>;
  /**
   * Arguments that are not in the path go into the query of GET and DELETE requests, and into the JSON body of other
   * requests, under their own names.
   */
  properties: Record<string, PropertySchema>;
  required?: string[];
}

export interface RestCall {
  method: string;
  /** Path and query, to be appended to the service's base URL. */
  target: string;
  body?: string;
}

export function restCall({ method, path, query = {}, properties }: RestTool, args: Record<string, unknown>): RestCall {
  const used = new Set<string>();
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    used.add(name);
    return segment(name, args[name]);
  });
  const rest = Object.entries(args).filter(([name]) => Object.hasOwn(properties, name) && !used.has(name));
  const inQuery = method === "GET" || method === "DELETE";
  const search = new URLSearchParams(query);
  if (inQuery) for (const [name, value] of rest) search.set(name, asText(value));
  const target = search.size === 0 ? filled : `${filled}?${search}`;
  return { method, target, ...(inQuery ? {} : { body: JSON.stringify(Object.fromEntries(rest)) }) };
}

/** Refuses an empty segment, "." and "..": they would call another path than the tool declares. */
function segment(name: string, value: unknown): string {
  const text = encodeURIComponent(asText(value ?? ""));
  if (!/^\.{0,2}$/.test(text)) return text;
  throw new PlatformError("bad_request", `"${name}" must not be empty, nor dots alone.`);
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
