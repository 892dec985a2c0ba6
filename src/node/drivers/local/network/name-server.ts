/**
 * Forwards DNS questions of workloads to the machine's own name servers, which workloads cannot reach. Names below
 * `localhost`, and names of other workloads of the asker's VPC, are answered here. An answer goes only to the workload that asked, and only once.
 */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, isIPv6 } from "node:net";
import { addressAnswer, type DnsQuestion, readQuestion, refusedAnswer } from "../../../../lib/network/dns-question.ts";
import { answerLoopback } from "../../../../lib/network/loopback-names.ts";
import { type Bounds, Places } from "./name-server-places.ts";
import { serveTcpQuestions } from "./name-server-tcp.ts";
import type { HostAddresses } from "./nat-addresses.ts";

export interface NameServer {
  port: number;
  stop(): Promise<void>;
}

/** Most questions in flight, far above ordinary use. One workload's slow names hold up its own questions only. */
const PENDING: Bounds = { all: 4096, tenant: 1024, asker: 128 };
const JUDGED: Bounds = { all: Number.POSITIVE_INFINITY, tenant: Number.POSITIVE_INFINITY, asker: 128 };
const TCP_CONNECTIONS: Bounds = { all: 256, tenant: 64, asker: 16 };
const ANSWER_WAIT_MS = 5_000;

/** Whether the workload at an address may ask for a name. */
export type MayResolve = (asker: string, name: string) => Promise<boolean>;

type NeighbourAt = (asker: string, name: string) => Promise<HostAddresses | "nobody" | null>;

export interface NameServerOptions {
  upstreams?: Upstream[];
  port?: number;
  /** Absent = everybody may ask for everything. */
  mayResolve?: MayResolve | undefined;
  /** The workload that has a name in the VPC of the workload at an address; null for every other name. */
  neighbourAt?: NeighbourAt;
  /** Whose workload is at an address. Absent = each workload is its own tenant. */
  tenantOf?: (asker: string) => string;
  /** Time for an answer; absent = 5 s. */
  answerWaitMs?: number;
}

export async function startNameServer(address: string, options: NameServerOptions = {}): Promise<NameServer> {
  const { upstreams = readUpstreams(), port = 53, answerWaitMs = ANSWER_WAIT_MS } = options;
  const tenantOf = options.tenantOf ?? ((asker: string) => asker);
  const judge = answering(new Places(JUDGED, tenantOf), options);
  const [upstream] = upstreams;
  if (!upstream) throw new Error("/etc/resolv.conf names no name server");
  const door = createSocket("udp4");
  const pending = new Set<UdpSocket>();
  const questions = new Places(PENDING, tenantOf);
  const connections = new Places(TCP_CONNECTIONS, tenantOf);
  door.on("message", (question, asker) => {
    judge(question, asker.address).then(
      (answer) => {
        if (answer)
          door.send(answer, asker.port, asker.address, () => {}); // the asker may be gone
        else ask({ door, pending, questions, upstream, answerWaitMs }, question, asker);
      },
      () => {}, // no question, or no rules: without an answer the asker asks again
    );
  });
  door.bind(port, address);
  await once(door, "listening");
  door.unref();
  const tcp = createServer({ allowHalfOpen: true }, (client) => {
    const { remoteAddress: asker = "" } = client;
    const leave = connections.enter(asker);
    if (leave === null) return void client.destroy();
    client.once("close", leave);
    void serveTcpQuestions(client, { upstream, answer: (message) => judge(message, asker) });
  });
  tcp.listen(door.address().port, address);
  await once(tcp, "listening");
  tcp.unref();
  return {
    port: door.address().port,
    async stop() {
      for (const socket of pending) socket.close();
      pending.clear();
      door.close();
      tcp.close();
    },
  };
}

interface Asking {
  door: UdpSocket;
  pending: Set<UdpSocket>;
  questions: Places;
  upstream: Upstream;
  answerWaitMs: number;
}

/** Uses a new socket per question: a forged answer would have to guess its port. */
function ask({ door, pending, questions, upstream, answerWaitMs }: Asking, question: Buffer, asker: RemoteInfo): void {
  const leave = questions.enter(asker.address);
  if (leave === null) return; // without an answer the asker asks again
  const socket = createSocket(isIPv6(upstream.host) ? "udp6" : "udp4");
  pending.add(socket);
  const finish = (): void => {
    clearTimeout(timer);
    if (!pending.delete(socket)) return;
    socket.close();
    leave();
  };
  const timer = setTimeout(finish, answerWaitMs).unref();
  socket.on("error", finish);
  socket.once("message", (answer) => {
    door.send(answer, asker.port, asker.address, () => {}); // the asker may be gone
    finish();
  });
  socket.connect(upstream.port, upstream.host, () => socket.send(question));
}

/**
 * The answer to a question that may not be asked, or that is for the asker itself or another workload; null for all others. Throws for a
 * message that is no question, and when the asker has its share of questions open.
 */
function answering(places: Places, { mayResolve, neighbourAt }: NameServerOptions) {
  const judged = async (question: DnsQuestion, asker: string): Promise<Buffer | null> => {
    if (!(await mayResolve?.(asker, question.name))) return refusedAnswer(question);
    const neighbour = await neighbourAt?.(asker, question.name);
    if (!neighbour) return null;
    if (neighbour === "nobody") return addressAnswer(question, null);
    return addressAnswer(question, [neighbour.ipv4, neighbour.ipv6 ?? ""]);
  };
  return async (message: Buffer, asker: string): Promise<Buffer | null> => {
    const own = answerLoopback(message);
    if (own || !mayResolve) return own;
    const question = readQuestion(message);
    const leave = question && places.enter(asker);
    if (!question || !leave) throw new Error("not one question, or one too many");
    return judged(question, asker).finally(leave);
  };
}

interface Upstream {
  host: string;
  port: number;
}

function readUpstreams(): Upstream[] {
  const lines = readFileSync("/etc/resolv.conf", "utf8").matchAll(/^nameserver\s+([0-9a-fA-F:.]+)/gm);
  return [...lines].map(([, host = ""]) => ({ host, port: 53 }));
}
