/**
 * State of a provider's own that must come back with the next request: signed thoughts, signatures of calls. Chat
 * carries it in `extra_content`; the other APIs have one opaque text for it, which their clients give back untouched.
 */
import { isRecord } from "../../../lib/untrusted-json.ts";
import type { Json } from "./front.ts";

export interface ProviderState {
  message?: Json;
  /** By the id of the call. */
  calls?: Record<string, Json>;
}

const MARK = "berth1.";

export const isEmpty = ({ message, calls }: ProviderState): boolean =>
  message === undefined && (calls === undefined || Object.keys(calls).length === 0);

export const sealState = (state: ProviderState): string =>
  MARK + Buffer.from(JSON.stringify(state)).toString("base64url");

/** Nothing for a text that another service has written. */
export function openState(text: unknown): ProviderState {
  if (typeof text !== "string" || !text.startsWith(MARK)) return {};
  try {
    const value: unknown = JSON.parse(Buffer.from(text.slice(MARK.length), "base64url").toString("utf8"));
    if (!isRecord(value)) return {};
    return {
      ...(isRecord(value.message) ? { message: value.message } : {}),
      ...(isRecord(value.calls) ? { calls: value.calls as Record<string, Json> } : {}),
    };
  } catch {
    return {};
  }
}

export function mergeStates(a: ProviderState, b: ProviderState): ProviderState {
  const message = mergeJson(a.message, b.message);
  const calls = mergeJson(a.calls, b.calls) as ProviderState["calls"];
  return { ...(message ? { message } : {}), ...(calls ? { calls } : {}) };
}

/** Lists one behind the other: a stream tells its thoughts one by one. */
export function mergeJson(a: Json | undefined, b: Json | undefined): Json | undefined {
  if (!a || !b) return a ?? b;
  const out = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const had = out[key];
    if (Array.isArray(had) && Array.isArray(value)) out[key] = [...had, ...value];
    else out[key] = isRecord(had) && isRecord(value) ? mergeJson(had, value) : value;
  }
  return out;
}
