/**
 * The work queue of a self-hosted environment of Claude Managed Agents, as the public reference of the Environments Work
 * endpoints describes it (beta managed-agents-2026-04-01): poll, acknowledge, stop. Polling uses the environment's key.
 */
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../../client/api-error.ts";
import { isObject } from "../json-path.ts";

export interface Work {
  id: string;
  sessionId: string;
  /** A payload for this session alone; null when the queue gave none. */
  secret: string | null;
}

export interface WorkQueue {
  /** Null when nothing waits. */
  claim(signal: AbortSignal): Promise<Work | null>;
  /** Ends a work item that its runner has not ended; a work item that has ended already is no failure. */
  stop(work: Work): Promise<void>;
}

const BETA = "managed-agents-2026-04-01";
const API_VERSION = "2023-06-01";
/** The API's own maximum for one poll. */
const BLOCK_MS = 999;
const CALL_MS = 30_000;
/** Bytes of an answer of the queue that are read; a work item has a few hundred. */
const ANSWER_CHARS_MAX = 1024 * 1024;
/** Growing pauses while the queue does not answer. */
const RETRY_FIRST_MS = 1000;
const RETRY_MAX_MS = 60_000;
/** Work ids and session ids stand in addresses and in a shell's environment. */
const ID = /^[\w-]{1,128}$/;

export function createWorkQueue(
  { url, environmentId, key, workerId }: { url: string; environmentId: string; key: string; workerId: string },
  note: (text: string) => void,
): WorkQueue {
  const base = `${url.replace(/\/+$/, "")}/v1/environments/${encodeURIComponent(environmentId)}/work`;
  const call = async (method: string, path: string, signal: AbortSignal, body?: object): Promise<unknown> => {
    const response = await fetch(`${base}${path}${path.includes("?") ? "&" : "?"}beta=true`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        "anthropic-version": API_VERSION,
        "anthropic-beta": BETA,
        "anthropic-worker-id": workerId,
        ...(body ? { "content-type": "application/json" } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
    }).catch((error: unknown) => {
      throw signal.aborted ? error : unreachable(url, error);
    });
    const text = (await response.text()).slice(0, ANSWER_CHARS_MAX);
    if (response.ok) return text === "" ? null : JSON.parse(text);
    throw new ApiError({
      status: response.status,
      code: "environment",
      message: `the queue answered ${response.status}: ${text}`,
    });
  };
  /** Repeats while the queue does not answer; a refusal of the key or the environment ends the worker. */
  const poll = async (signal: AbortSignal): Promise<unknown> => {
    for (let waitMs = RETRY_FIRST_MS; ; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
      try {
        return await call("GET", `/poll?block_ms=${BLOCK_MS}`, signal);
      } catch (error) {
        if (signal.aborted || isFinal(error)) throw error;
        note(`${(error as Error).message}; next try in ${waitMs / 1000} s`);
        await pause(waitMs, undefined, { signal });
      }
    }
  };
  return {
    async claim(signal) {
      const found = await poll(signal);
      if (!isObject(found)) return null;
      const { id, data, secret } = found;
      const session = isObject(data) && data.type === "session" ? data.id : undefined;
      if (typeof id !== "string" || !ID.test(id)) throw new Error("the queue gave a work item without a usable id");
      const work = { id, sessionId: String(session ?? ""), secret: typeof secret === "string" ? secret : null };
      await call("POST", `/${id}/ack`, signal);
      if (ID.test(work.sessionId)) return work;
      note(`work item ${id} is no session; it is stopped`);
      await this.stop(work);
      return null;
    },
    async stop({ id }) {
      await call("POST", `/${id}/stop`, new AbortController().signal, { force: true }).catch((error: unknown) => {
        if (!(error instanceof ApiError && error.status === 409)) note(`work item ${id} was not stopped: ${error}`);
      });
    },
  };
}

/** The message of a failed fetch says only that it failed; its cause says why. */
function unreachable(url: string, error: unknown): Error {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message: string };
  // Without a name and a password that the address may have.
  const origin = URL.canParse(url) ? new URL(url).origin : url;
  return new Error(`the queue at ${origin} does not answer (${cause?.code ?? cause?.message ?? message})`, {
    cause: error,
  });
}

const isFinal = (error: unknown): boolean =>
  error instanceof ApiError && error.status >= 400 && error.status < 500 && ![408, 409, 429].includes(error.status);
