/**
 * The session of a client at a virtual server: the sessions that it has at each of the servers behind, written into the
 * one session id that the client keeps. Nothing is stored here, and a forged id gains nothing: every request behind it
 * is made with the credentials of who sent it, and a server's sessions can be asked for at its own address as well.
 */
import type { MemberSession } from "./member.ts";

/** Name of the function -> the session there. */
export type VirtualSession = ReadonlyMap<string, MemberSession>;

const MARK = "v1.";
const ID_MAX_LENGTH = 8192;
/** What a header may carry. */
const PLAIN = /^[\x21-\x7e]{0,1024}$/;

const rowTo = (name: string, { id, version }: MemberSession): string[] => [name, id ?? "", version];

/** Whether the session of one of `count` servers fits beside those of the others: a server makes up its own id. */
export const isCarried = (name: string, session: MemberSession, count: number): boolean =>
  PLAIN.test(session.id ?? "") &&
  JSON.stringify(rowTo(name, session)).length <= Math.floor((ID_MAX_LENGTH * 0.7) / count);

export function sessionIdOf(session: VirtualSession): string {
  const rows = [...session].map(([name, one]) => rowTo(name, one));
  return MARK + Buffer.from(JSON.stringify(rows)).toString("base64url");
}

/** Null for an id that this server did not write. */
export function sessionFrom(id: string): VirtualSession | null {
  if (!id.startsWith(MARK) || id.length > ID_MAX_LENGTH) return null;
  try {
    const rows: unknown = JSON.parse(Buffer.from(id.slice(MARK.length), "base64url").toString("utf8"));
    if (!Array.isArray(rows)) return null;
    return new Map(rows.map(rowOf));
  } catch {
    return null;
  }
}

function rowOf(row: unknown): [string, MemberSession] {
  const [name, id, version] = Array.isArray(row) ? (row as unknown[]) : [];
  for (const text of [name, id, version])
    if (typeof text !== "string" || !PLAIN.test(text)) throw new Error("not a session id");
  return [name as string, { id: id === "" ? null : (id as string), version: version as string }];
}
