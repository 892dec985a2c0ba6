/** Reads a resource again and again until it is as expected; the deadline of the test ends the wait. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { TestPlatform } from "../platform.ts";

export interface ReadResource {
  status: string;
  events: { type: string; message: string }[];
  spec: Record<string, unknown>;
  /** Of a sandbox. */
  bandwidth?: unknown;
}

const PAUSE_MS = 20;

export async function readUntil(
  call: TestPlatform["call"],
  path: string,
  isSo: (resource: ReadResource) => boolean,
): Promise<ReadResource> {
  for (;;) {
    const { status, body } = await call<ReadResource>("GET", path);
    assert.equal(status, 200, JSON.stringify(body));
    if (isSo(body)) return body;
    await delay(PAUSE_MS);
  }
}
