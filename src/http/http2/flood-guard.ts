/**
 * Ends HTTP/2 sessions that send control frames faster than any client needs. Such a frame costs its sender nothing and
 * the server an answer: PING and SETTINGS are acknowledged, a reset stream was set up before.
 */
import type { ServerHttp2Session } from "node:http2";

/** The error code of RFC 9113 for a peer that causes too much load. */
const ENHANCE_YOUR_CALM = 0xb;

/** Control frames that a session may send at once, and per second from then on. */
const BURST = 200;
const PER_SECOND = 20;

export function guardAgainstFloods(session: ServerHttp2Session): void {
  let allowance = BURST;
  let lastMs = performance.now();
  const count = (): void => {
    const nowMs = performance.now();
    allowance = Math.min(BURST, allowance + ((nowMs - lastMs) / 1000) * PER_SECOND) - 1;
    lastMs = nowMs;
    if (allowance >= 0 || session.destroyed) return;
    session.goaway(ENHANCE_YOUR_CALM);
    session.destroy();
  };
  session.on("ping", count);
  session.on("remoteSettings", count);
}
