/** Answers the questions that come over one connection, several at a time, until it ends. */
import type { Readable, Writable } from "node:stream";
import { errnoOf } from "../errors.ts";
import { type Frame, FrameReader, frameOf } from "../frames.ts";
import type { AnswerHead, AskHead, Greeting } from "../wire.ts";
import type { FileSession } from "./file-session.ts";

/** Questions of one mount that are answered at once; further ones wait in the connection. */
const AT_ONCE = 32;

/** Resolves when the other end has left. The session is closed then. `begun`: bytes of `input` that were read before. */
export async function serveMount(
  session: FileSession,
  input: Readable,
  output: Writable,
  begun: Buffer = Buffer.alloc(0),
): Promise<void> {
  const reader = new FrameReader();
  reader.push(begun);
  let running = 0;
  let turn = Promise.withResolvers<void>();
  const write = (parts: Buffer[]): void => {
    output.cork();
    for (const part of parts) output.write(part);
    process.nextTick(() => output.uncork());
  };
  const answer = async ({ head, body }: Frame<AskHead>): Promise<void> => {
    const { id, ask, args } = head;
    try {
      const { body: bytes, ...rest } = await session.answer(ask, args ?? {}, body);
      write(frameOf({ id, ...rest } satisfies AnswerHead, bytes));
    } catch (error) {
      write(frameOf({ id, errno: errnoOf(error) } satisfies AnswerHead));
    } finally {
      running -= 1;
      turn.resolve();
    }
  };
  const oneLess = (): Promise<void> => {
    turn = Promise.withResolvers<void>();
    return turn.promise;
  };
  try {
    write(frameOf({ ready: true } satisfies Greeting));
    for await (const chunk of input as AsyncIterable<Buffer>) {
      reader.push(chunk);
      for (let frame = reader.next<AskHead>(); frame; frame = reader.next<AskHead>()) {
        running += 1;
        void answer(frame);
        while (running >= AT_ONCE) await oneLess();
      }
      // A mount that reads no answers gets no more of them into memory.
      while (output.writableNeedDrain && !output.destroyed) await new Promise((ready) => onceAny(output, ready));
    }
  } catch {
    // The connection broke, or what came is no question.
  } finally {
    while (running > 0) await oneLess();
    await session.close();
    output.end();
  }
}

function onceAny(output: Writable, ready: (value: unknown) => void): void {
  const done = (): void => {
    for (const name of ["drain", "close", "error"]) output.off(name, done);
    ready(null);
  };
  for (const name of ["drain", "close", "error"]) output.on(name, done);
}
