/** Requests to the daemon inside a workload, for tests. */
import { request } from "node:http";
import { dial } from "../dial/dial.ts";
import type { Observed } from "../workload.ts";

/** One request to the workload's API socket. */
export async function call(
  workload: Pick<Observed, "endpoint">,
  path: string,
  options: { method?: string; body?: unknown; socket?: "api" | "control" } = {},
): Promise<{ status: number; text: string }> {
  const stream = await dial(workload.endpoint, options.socket ?? "api");
  return new Promise((resolve, reject) => {
    const outgoing = request({
      createConnection: () => stream,
      method: options.method ?? "GET",
      path,
      headers: { host: "sandbox", connection: "close", "content-type": "application/json" },
    });
    outgoing.once("error", reject);
    outgoing.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("error", reject);
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    outgoing.end(options.body === undefined ? undefined : JSON.stringify(options.body));
  });
}
