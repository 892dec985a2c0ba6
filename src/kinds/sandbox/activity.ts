/** Asks the daemon inside a sandbox whether anything keeps it awake. */
import { request } from "node:http";
import { CONTROL, type SandboxActivity } from "../../contract/sandbox-wire.ts";
import { dial, type Endpoint } from "../../runtime/driver.ts";

const ANSWER_MS = 2000;
/** The other side is hostile ground: an answer longer than this is none. */
const ANSWER_BYTES_MAX = 16 * 1024;

/** Null when it does not answer sensibly: then nobody may say that it is idle. */
export async function sandboxActivity(endpoint: Endpoint): Promise<SandboxActivity | null> {
  try {
    const socket = await dial(endpoint, "control");
    const body = await get(CONTROL.activity, socket);
    const answer = JSON.parse(body) as SandboxActivity;
    const counts = [answer.keepAlive, answer.awake, answer.terminalClients, answer.portConnections];
    return counts.every((count) => Number.isInteger(count)) ? answer : null;
  } catch {
    return null; // an unreachable daemon is restarted by its own init
  }
}

function get(path: string, socket: Awaited<ReturnType<typeof dial>>): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { path, createConnection: () => socket as never, signal: AbortSignal.timeout(ANSWER_MS) },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
          if (text.length > ANSWER_BYTES_MAX) response.destroy(new Error("too long"));
        });
        response.on("end", () => resolve(text));
        response.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}
