/** The management API with the credentials of one request. */
import type { DirectCall, DirectRequest } from "../../contract/direct-call.ts";
import { VERSIONS } from "../../contract/versions/version.ts";
import type { Downstream } from "../../http/downstream.ts";
import { brandWords } from "../../http/header-rules.ts";
import { Refusal } from "./refusal.ts";

export type Management = <T>(operation: string, asked?: Asked) => Promise<T>;

interface Asked extends Pick<DirectRequest, "params" | "query" | "body"> {
  /** Default: the workspace that the client names, or that of the credentials. */
  workspace?: string;
  /** Told the header fields of the answer, names in lower case. */
  told?: (headers: Readonly<Record<string, string>>) => void;
}

const NEWEST = VERSIONS[VERSIONS.length - 1] ?? "";
/**
 * Fields of the client that the pipeline reads. An Idempotency-Key is not among them: one request here may be several
 * to the pipeline, and its times differ with each try. See `nameFor`.
 */
const PASSED = ["x-forwarded-for"];

export function managementOf(
  call: DirectCall,
  down: Downstream,
  { token, brand, requestId }: { token: string; brand: string; requestId: string },
): Management {
  const sent = [...PASSED, ...brandWords(brand).map((word) => `x-${word}-workspace`)];
  const passed = sent.flatMap((name) => {
    const value = down.header(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const { workload } = down;
  const peer = down.fromNetwork ? down.remoteAddress : undefined;
  return async <T>(operation: string, { workspace, told, ...asked }: Asked = {}) => {
    const headers = {
      ...Object.fromEntries(passed),
      "x-service-authorization": `Bearer ${token}`,
      "service-version": NEWEST,
      ...(workspace === undefined ? {} : { "x-service-workspace": workspace, [`x-${brand}-workspace`]: workspace }),
    };
    const { status, body, headers: fields } = await call(operation, { ...asked, headers, requestId, peer, workload });
    if (status >= 400) throw new Refusal(status, messageIn(body));
    told?.(fields);
    return body as T;
  };
}

function messageIn(body: unknown): string {
  const message = typeof body === "object" && body !== null && "message" in body ? body.message : undefined;
  return typeof message === "string" ? message : "The request was refused.";
}
