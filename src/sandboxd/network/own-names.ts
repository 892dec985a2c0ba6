/**
 * Answers DNS questions inside a workload that has no name server. Names below `localhost` resolve to the workload's
 * own loopback, where the platform's doors are. All other names fail at once.
 */
import { createSocket } from "node:dgram";
import { answerLoopback } from "../../lib/network/loopback-names.ts";

const HEADER_BYTES = 12;
const SERVER_FAILURE = 2;

/** Resolves also when the address cannot be bound: names then fail, and nothing else does. */
export async function answerOwnNames({ host, port }: { host: string; port: number }): Promise<void> {
  const socket = createSocket("udp4");
  const settled = Promise.withResolvers<void>();
  socket.on("error", () => settled.resolve());
  socket.on("message", (question, asker) => {
    if (question.length < HEADER_BYTES) return;
    socket.send(answerLoopback(question) ?? failed(question), asker.port, asker.address, () => {}); // it may be gone
  });
  socket.bind(port, host, () => settled.resolve());
  await settled.promise;
}

function failed(question: Buffer): Buffer {
  const answer = Buffer.from(question);
  answer.writeUInt16BE(0x8000 | (question.readUInt16BE(2) & 0x7900) | SERVER_FAILURE, 2);
  return answer;
}
