/**
 * The API inside a sandbox, as the command line uses it. It is called below the server's own address, so that the key
 * is sent only to that server.
 */
import { ApiError } from "../client/api-error.ts";
import type { Operation } from "../contract/operation.ts";
import { OPERATIONS } from "../kinds/index.ts";
import { connect } from "./actions/call-input.ts";
import { type Invocation, text } from "./command.ts";
import { resolveConnection } from "./connection.ts";
import { isObject, memberAt } from "./json-path.ts";

export interface SandboxDoor {
  /** The sandbox's address, without a trailing slash. */
  url: string;
  bearer(): Promise<string>;
  /** Throws for anything but success. */
  fetch(path: string, init?: RequestInit & { duplex?: "half" }): Promise<Response>;
}

export async function openSandbox(name: string, call: Invocation): Promise<SandboxDoor> {
  const { options, context } = call;
  const { url, bearer } = resolveConnection(
    { url: text(options.url), workspace: text(options.workspace), profile: text(options.profile) },
    context.env,
  );
  const sandbox = await connect(call).call(operation("sandboxGet"), { params: { sandboxName: name } });
  const workspace = String(memberAt(sandbox, "metadata.workspace"));
  const base = `${url}/${encodeURIComponent(workspace)}/sandboxes/${encodeURIComponent(name)}`;
  return {
    url: base,
    bearer,
    async fetch(path, init = {}) {
      const own = { "x-service-authorization": `Bearer ${await bearer()}` };
      const headers = { ...(init.headers as Record<string, string>), ...own };
      const response = await fetch(base + path, { ...init, headers, redirect: "manual" }).catch((error: unknown) => {
        throw new ApiError({ status: 0, code: "unreachable", message: `${url} does not answer.`, cause: error });
      });
      if (response.ok) return response;
      throw new ApiError({ status: response.status, code: "sandbox", message: await reasonIn(response) });
    },
  };
}

/** The declaration of an operation that must exist. */
export function operation(id: string): Operation {
  const found = OPERATIONS.find((each) => each.id === id);
  if (!found) throw new Error(`the operation list has no ${id}`);
  return found;
}

/** Reads both error shapes: the sandbox's `{error: text}` and the gateway's `{error: {message}}`. */
async function reasonIn(response: Response): Promise<string> {
  const said = await response.text().catch(() => "");
  try {
    const body: unknown = JSON.parse(said);
    const reason = memberAt(body, "error.message") ?? (isObject(body) ? (body.error ?? body.message) : undefined);
    if (typeof reason === "string") return reason;
  } catch {
    // Not JSON: report the status instead.
  }
  return `the sandbox answered ${response.status} ${response.statusText}`;
}

/** The lines of a stream, as they arrive. */
export async function* linesOf(response: Response): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/**
 * A path inside the sandbox as one segment, in which `fetch` resolves no dots. Behind `./` a relative path is not the
 * name of an operation; `~` is the home directory only at the beginning.
 */
export const filePath = (path: string): string =>
  `/filesystem/${encodeURIComponent(/^[/~]/.test(path) ? path : `./${path}`)}`;
