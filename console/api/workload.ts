/** Requests to a workload at its own address, with the token of the session. */
import { settings } from "../lib/settings.ts";
import { requestTo, type WorkloadCall } from "../lib/workload-request.ts";
import { failureOf, unreachable } from "./failure.ts";
import { token } from "./session.ts";

export interface Workload {
  workspace: string;
  plural: string;
  name: string;
}

export const addressOf = ({ workspace, plural, name }: Workload): string =>
  `${settings.publicUrl}/${[workspace, plural, name].map(encodeURIComponent).join("/")}`;

export async function callWorkload<T>(workload: Workload, given: WorkloadCall): Promise<T> {
  return (await (await sendToWorkload(workload, given)).json()) as T;
}

/** The response itself, for streams and files; it is a success. */
export async function sendToWorkload(workload: Workload, given: WorkloadCall): Promise<Response> {
  const response = await askWorkload(workload, given);
  if (!response.ok) throw await failureOf(response);
  return response;
}

/** The response, whatever its status. */
export async function askWorkload(workload: Workload, given: WorkloadCall): Promise<Response> {
  const request = requestTo(addressOf(workload), given, await token());
  return fetch(request).catch((error: unknown) => {
    if (given.signal?.aborted) throw error;
    throw unreachable();
  });
}

/**
 * Browsers cannot set fields of a WebSocket, so the token goes as a subprotocol, which no log of addresses has. The
 * gateway removes the token before the workload sees the request.
 */
export async function openSocket(workload: Workload, path: string, query: Record<string, string>): Promise<WebSocket> {
  const address = `${addressOf(workload).replace(/^http/, "ws")}${path}?${new URLSearchParams(query)}`;
  return new WebSocket(address, ["service", `service.bearer.${await token()}`]);
}
