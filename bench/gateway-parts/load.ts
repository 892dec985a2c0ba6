/** Closed-loop load from raw sockets: cheaper than any HTTP client, so that less of the machine goes to the measuring. */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Load, percentiles } from "../measure.ts";

export interface Shot {
  port: number;
  request: Buffer;
  connections: number;
  durationMs: number;
  /** Over TLS. */
  secure?: boolean;
}

export async function shoot({
  port,
  request,
  connections,
  durationMs,
  secure = false,
}: Shot): Promise<Load & { count: number }> {
  const times: number[] = [];
  const started = performance.now();
  const until = started + durationMs;
  await Promise.all(
    Array.from({ length: connections }, () => client(() => opened(port, secure), request, until, times)),
  );
  const tookMs = performance.now() - started;
  return { perSecond: (times.length * 1000) / tookMs, count: times.length, ...percentiles(times) };
}

/** Writing before the connection stands is fine: the socket keeps what is written. */
const opened = (port: number, secure: boolean): Socket =>
  secure
    ? connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] }).setNoDelay(true)
    : connect({ port, host: "127.0.0.1", noDelay: true });

function client(open: () => Socket, request: Buffer, until: number, times: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = open();
    let received = Buffer.alloc(0);
    let expected = -1;
    let sentAt = 0;
    const send = (): void => {
      sentAt = performance.now();
      received = Buffer.alloc(0);
      expected = -1;
      socket.write(request);
    };
    socket.once("encrypted" in socket ? "secureConnect" : "connect", send);
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the connection was closed")));
    socket.on("data", (chunk) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      if (expected < 0) {
        const end = received.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = received.toString("latin1", 0, end);
        if (!head.startsWith("HTTP/1.1 200")) return socket.destroy(new Error(head));
        expected = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1]);
      }
      if (received.length < expected) return;
      const now = performance.now();
      times.push(now - sentAt);
      if (now < until) send();
      else {
        socket.removeAllListeners("close");
        socket.end();
        resolve();
      }
    });
  });
}
