/**
 * Answers questions about names inside a workload that has no name server: those below `localhost` lead to its own
 * loopback, where the platform's doors are. Everything else fails at once, as without it.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { answerLoopback } from "../lib/loopback-names.ts";

const HEADER_BYTES = 12;
const SERVER_FAILURE = 2;

export async function answerOwnNames({ host, port }: { host: string; port: number }): Promise<void> {
  const socket = createSocket("udp4");
  socket.on("message", (question, asker) => {
    if (question.length < HEADER_BYTES) return;
    socket.send(answerLoopback(question) ?? failed(question), asker.port, asker.address, () => {}); // it may be gone
  });
  socket.bind(port, host);
  await once(socket, "listening");
}

function failed(question: Buffer): Buffer {
  const answer = Buffer.from(question);
  answer.writeUInt16BE(0x8000 | (question.readUInt16BE(2) & 0x7900) | SERVER_FAILURE, 2);
  return answer;
}
