/** Asks the daemon inside a sandbox whether anything keeps it awake. */

import { CONTROL, type SandboxActivity } from "../../contract/sandbox-wire.ts";
import type { Endpoint } from "../../node/dial/endpoint.ts";
import { askInside } from "./inside.ts";

const ANSWER_MS = 2000;

/** Returns null when the daemon gives no valid answer; the sandbox then counts as busy. */
export async function sandboxActivity(endpoint: Endpoint): Promise<SandboxActivity | null> {
  try {
    const { text } = await askInside(endpoint, { door: "control", path: CONTROL.activity, answerMs: ANSWER_MS });
    const answer = JSON.parse(text) as SandboxActivity;
    const counts = [answer.keepAlive, answer.awake, answer.terminalClients, answer.portConnections];
    return counts.every((count) => Number.isInteger(count)) ? answer : null;
  } catch {
    return null; // an unreachable daemon is restarted by its own init
  }
}
