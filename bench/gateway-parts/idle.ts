/** Memory of idle connections: kept HTTP connections, the same over TLS, and WebSockets that say nothing. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { table } from "../measure.ts";
import { shoot } from "./load.ts";
import { rssMb, type Subject } from "./subject.ts";

const COUNT = 1000;
/** Opened and closed before the measurement, so that the code is loaded; few, because their memory is used again. */
const WARM_UP = 20;
/**
 * Time of plain requests on few connections before that: the garbage of any request lets V8's young generation grow to
 * its working size, once in the life of a process, and that growth would be counted as memory of the connections.
 */
const WARM_UP_MS = 4000;
const WARM_UP_CONNECTIONS = 4;
/** Connections that are being opened at a time: the backlog of a listener is finite. */
const AT_ONCE = 50;

export interface IdleWay {
  name: string;
  secure: boolean;
  /** What each connection sends; the answer's head is awaited. */
  request: Buffer;
}

export interface IdleSubject {
  name: string;
  /** A process of its own for each measurement: memory that an earlier one gave back would be used again. */
  start(secure: boolean): Promise<Subject | null>;
}

/** `plain` is a request that warms a subject up. */
export async function idle(subjects: readonly IdleSubject[], ways: readonly IdleWay[], plain: Buffer): Promise<void> {
  const rows: Record<string, string | number>[] = [];
  for (const way of ways)
    for (const { name, start } of subjects) {
      const subject = await start(way.secure);
      if (subject === null) continue;
      const { port } = subject;
      const { secure } = way;
      await shoot({ port, secure, request: plain, connections: WARM_UP_CONNECTIONS, durationMs: WARM_UP_MS });
      rows.push({ what: `${name}, ${way.name}`, ...(await measured(subject, way)) });
    }
  table(`Idle connections: the first ${COUNT} of a process, and the next ${COUNT}`, rows);
}

async function measured(subject: Subject, way: IdleWay): Promise<Record<string, string | number>> {
  await close(await open(subject.port, way, WARM_UP));
  const before = { rss: rssMb(subject), heap: await subject.heapMb?.() };
  const first = await open(subject.port, way, COUNT);
  const between = { rss: rssMb(subject), heap: await subject.heapMb?.() };
  const next = await open(subject.port, way, COUNT);
  const after = rssMb(subject);
  await close([...first, ...next]);
  const each = (mb: number): number => (mb * 1024) / COUNT;
  return {
    "RSS KB each, first": each(between.rss - before.rss),
    next: each(after - between.rss),
    "live heap KB each":
      before.heap === undefined || between.heap === undefined ? "" : each(between.heap - before.heap),
  };
}

async function open(port: number, { secure, request }: IdleWay, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, async () => {
      const socket = secure
        ? connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
        : connect({ port, host: "127.0.0.1" });
      socket.write(request);
      const [answer] = (await Promise.race([once(socket, "data"), once(socket, "close")])) as [unknown];
      if (!/^HTTP\/1\.1 (?:101|200) /.test(String(answer))) throw new Error(`no connection: ${answer}`);
      socket.resume();
      return socket;
    });
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

async function close(sockets: readonly Socket[]): Promise<void> {
  await Promise.all(
    sockets.map(async (socket) => {
      const closed = once(socket, "close");
      socket.destroy();
      await closed;
    }),
  );
}
