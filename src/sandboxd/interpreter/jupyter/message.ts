/**
 * Messages of the Jupyter kernel protocol (https://jupyter-client.readthedocs.io/en/stable/messaging.html). Every
 * message of a kernel names the request that it belongs to (`parent_header`).
 */
import { randomUUID } from "node:crypto";

export const PROTOCOL_VERSION = "5.3";

/** `control` requests overtake those of `shell`; `iopub` is what every client of the kernel sees. */
export type Channel = "shell" | "control" | "iopub" | "stdin";

const HEADER_MEMBERS = ["msg_id", "session", "username", "date", "msg_type", "version"] as const;
/** The header of a request is repeated in each of its answers. */
const HEADER_CHARS_MAX = 256;

export type Header = Partial<Record<(typeof HEADER_MEMBERS)[number], string>>;

export interface KernelMessage {
  channel: Channel;
  header: Header;
  parent_header: Header;
  metadata: Record<string, unknown>;
  content: Record<string, unknown>;
}

export interface KernelRequest {
  channel: Channel;
  header: Header;
  type: string;
  content: Readonly<Record<string, unknown>>;
}

export function messageOf(
  channel: Channel,
  type: string,
  parent: Header,
  content: Record<string, unknown>,
): KernelMessage {
  const header: Header = {
    ...{ msg_id: randomUUID(), msg_type: type, session: parent.session ?? "", username: "kernel" },
    ...{ date: new Date().toISOString(), version: PROTOCOL_VERSION },
  };
  return { channel, header, parent_header: parent, metadata: {}, content };
}

/** Null for what is not a request of a client. */
export function requestOf(value: unknown, named?: string): KernelRequest | null {
  if (!isRecord(value) || !isRecord(value.header)) return null;
  const raw = value.header;
  const header: Header = {};
  for (const member of HEADER_MEMBERS) {
    const text = raw[member];
    if (typeof text === "string") header[member] = text.slice(0, HEADER_CHARS_MAX);
  }
  const channel = named ?? value.channel ?? "shell";
  if (header.msg_type === undefined || header.msg_id === undefined) return null;
  if (channel !== "shell" && channel !== "control" && channel !== "stdin") return null;
  return { channel, header, type: header.msg_type, content: isRecord(value.content) ? value.content : {} };
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
