/** The tools of several servers under one list of names: `{prefix}_{tool}`. */
import { matchesAny, type ServedServer } from "../../contract/tools/tool-rules.ts";
import { isRecord } from "../../lib/untrusted-json.ts";

export interface Behind {
  server: ServedServer;
  /** The tool's name at its own server. */
  tool: string;
}

/** The server behind a name; null when the name belongs to none. No prefix begins with another, so one can match. */
export function behind(servers: readonly ServedServer[], name: unknown): Behind | null {
  if (typeof name !== "string") return null;
  const server = servers.find(({ prefix }) => name.startsWith(`${prefix}_`));
  if (server === undefined) return null;
  const tool = name.slice(server.prefix.length + 1);
  return server.allow === null || matchesAny(server.allow, tool) ? { server, tool } : null;
}

/** The definitions of one server as the virtual server lists them. */
export const prefixed = ({ prefix, allow }: ServedServer, definitions: readonly unknown[]): unknown[] =>
  definitions.flatMap((definition) =>
    isRecord(definition) &&
    typeof definition.name === "string" &&
    (allow === null || matchesAny(allow, definition.name))
      ? [{ ...definition, name: `${prefix}_${definition.name}` }]
      : [],
  );

/** Requests of several servers reach one client, so their ids name the server too. */
export const clientId = (server: number, id: unknown): string => `${server}:${JSON.stringify(id)}`;

export function serverId(id: unknown): { server: number; id: unknown } | null {
  const [, server, own] = typeof id === "string" ? (/^(\d{1,2}):(.*)$/s.exec(id) ?? []) : [];
  if (server === undefined || own === undefined) return null;
  try {
    return { server: Number(server), id: JSON.parse(own) as unknown };
  } catch {
    return null;
  }
}
