/**
 * Questions of workloads over TCP, which long answers need. Every message of a connection is read and judged as a
 * datagram is; those that may be asked go to the name server on one connection.
 */
import { connect, type Socket } from "node:net";

export interface TcpQuestions {
  upstream: { host: string; port: number };
  /** The platform's own answer; null: the question is for the name server. Rejects: the connection is cut. */
  answer(message: Buffer): Promise<Buffer | null>;
}

/** Idle timeout of a connection; a name server has this long to answer. */
const IDLE_MS = 10_000;
/** A question is a name and some options. */
const QUESTION_BYTES_MAX = 4096;
const ANSWER_BYTES_MAX = 65_535;
const LENGTH_BYTES = 2;

/** Serves a connection until it ends. `client` must allow one side to end first. */
export async function serveTcpQuestions(client: Socket, { upstream, answer }: TcpQuestions): Promise<void> {
  let server: Socket | null = null;
  guard(client);
  client.once("close", () => server?.destroy());
  const begin = (): Socket => {
    const opened = guard(connect({ ...upstream, allowHalfOpen: true }));
    opened.once("close", () => client.destroy());
    passAnswers(opened, client).catch(() => client.destroy());
    return opened;
  };
  try {
    for await (const message of messagesOf(client, QUESTION_BYTES_MAX)) {
      const own = await answer(message);
      server ??= own ? null : begin();
      await write(own || !server ? client : server, own ?? message);
    }
    if (server) server.end();
    else client.end();
  } catch {
    client.destroy();
  }
}

async function passAnswers(server: Socket, client: Socket): Promise<void> {
  for await (const message of messagesOf(server, ANSWER_BYTES_MAX)) await write(client, message);
  client.end();
}

function guard(socket: Socket): Socket {
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  return socket.on("error", () => socket.destroy());
}

/** Waits for a reader that is slow, so that no more than one message is held for it. */
async function write(to: Socket, message: Buffer): Promise<void> {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(message.length);
  if (to.destroyed || to.write(Buffer.concat([length, message]))) return;
  await new Promise<void>((resolve) => {
    to.once("drain", resolve);
    to.once("close", resolve);
  });
}

/** DNS messages of a stream; each has its length before it (RFC 1035, 4.2.2). */
async function* messagesOf(from: Socket, bytesMax: number): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  for await (const chunk of from as AsyncIterable<Buffer>) {
    held = Buffer.concat([held, chunk]);
    while (held.length >= LENGTH_BYTES) {
      const length = held.readUInt16BE();
      if (length > bytesMax) throw new Error("a message is too long");
      const end = LENGTH_BYTES + length;
      if (held.length < end) break;
      yield held.subarray(LENGTH_BYTES, end);
      held = held.subarray(end);
    }
  }
}
