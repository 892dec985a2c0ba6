/** Closed-loop load over raw sockets: the generator shares the machine with what it measures, so it must be light. */
import { connect } from "node:net";
import { type Load, percentiles } from "../measure.ts";

export interface RawTarget {
  port: number;
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface RawLoad extends Load {
  /** Answers other than 200; they are not in the times. */
  failed: number;
}

export function rawLoad(target: RawTarget, connections: number, durationMs: number): Promise<RawLoad> {
  const request = Buffer.from(
    [
      `POST ${target.path} HTTP/1.1`,
      "host: 127.0.0.1",
      "content-type: application/json",
      `content-length: ${Buffer.byteLength(target.body)}`,
      ...Object.entries(target.headers).map(([name, value]) => `${name}: ${value}`),
      "",
      target.body,
    ].join("\r\n"),
  );
  const times: number[] = [];
  const tally = { times, failed: 0 };
  const started = performance.now();
  const clients = Array.from({ length: connections }, () => client(target.port, request, started + durationMs, tally));
  return Promise.all(clients).then(() => ({
    perSecond: (times.length * 1000) / (performance.now() - started),
    ...percentiles(times),
    failed: tally.failed,
  }));
}

function client(
  port: number,
  request: Buffer,
  endsAt: number,
  tally: { times: number[]; failed: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let sentAt = 0;
    let seen = "";
    const send = (): void => {
      sentAt = performance.now();
      socket.write(request);
    };
    socket.setNoDelay(true);
    socket.on("connect", send);
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      seen += chunk.toString("latin1");
      if (!isComplete(seen)) return;
      const now = performance.now();
      if (seen.startsWith("HTTP/1.1 200")) tally.times.push(now - sentAt);
      else tally.failed += 1;
      seen = "";
      if (now < endsAt) return send();
      socket.destroy();
      resolve();
    });
  });
}

function isComplete(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end + 2))?.[1];
  return length === undefined ? text.endsWith("\r\n0\r\n\r\n") : text.length >= end + 4 + Number(length);
}
