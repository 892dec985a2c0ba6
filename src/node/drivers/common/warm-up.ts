/**
 * Commands that a prepared sandbox runs before it has an owner. The daemon loads and compiles the code of an API at its
 * first use, so a first command takes twice as long as the next.
 */
import { CONTROL } from "../../../contract/sandbox-wire.ts";
import type { Endpoint } from "../../dial/endpoint.ts";
import { askControl, callControl } from "./control.ts";

/** The second run is faster than the first, the third a little more. */
const RUNS = 3;
/** E2B's API shares all but its own messages with the platform's, which has run before. */
const E2B_RUNS = 2;
const ANSWER_BYTES_MAX = 64 * 1024;
const COMMAND = { command: "true", waitForCompletion: true };
/** A message of the Connect protocol: a flag byte, a length of four bytes, and JSON. */
const HEADER_BYTES = 5;

/** Runs commands through the platform's own API and through E2B's. Throws where the sandbox does not run them. */
export async function warmUp(endpoint: Endpoint): Promise<void> {
  for (let run = 0; run < RUNS; run += 1) await callControl(endpoint, CONTROL.warm, COMMAND);
  const message = Buffer.from(JSON.stringify({ process: { cmd: "/bin/sh", args: ["-c", "true"] } }));
  const framed = Buffer.concat([Buffer.alloc(HEADER_BYTES), message]);
  framed.writeUInt32BE(message.length, 1);
  for (let run = 0; run < E2B_RUNS; run += 1)
    await askControl(endpoint, CONTROL.warmE2b, framed, ANSWER_BYTES_MAX, "application/connect+json");
}
