/** Reads questions from an open /dev/fuse and writes their answers, until the mount is gone. */
import { read, writeSync, writevSync } from "node:fs";
import { constants } from "node:os";
import { errnoOf } from "../errors.ts";
import { answerHeader, initAnswer, OPCODE, parseRequest, REQUEST_BYTES, resendNotice } from "./kernel.ts";
import { OpenQuestions } from "./open-questions.ts";
import type { Requests } from "./requests.ts";

/** Reads that wait at the device; each holds a thread, of which Node has four. */
const READERS = 2;
/** Buffers that each reader keeps for later. */
const FREE_MAX = 8;
/** A question up to this size is copied, and does not hold the buffer of a large one. */
const SMALL_BYTES = 64 * 1024;
/**
 * Large questions of one reader that wait for their answers: writes of many threads to a drive whose node is slow. The
 * kernel keeps further ones, in the memory of those who write.
 */
const LARGE_MAX = 64;
/** The kernel gave up the question that was about to be read, or a signal came. */
const AGAIN = new Set(["ENOENT", "EINTR", "EAGAIN"]);

/** Resolves when the kernel has ended the mount. */
export async function serveDevice(fd: number, requests: Requests): Promise<void> {
  try {
    writeSync(fd, resendNotice());
  } catch {
    // A new mount, or a kernel that does not send anything again.
  }
  const open = new OpenQuestions((unique) => write(fd, answerHeader(unique, constants.errno.EINTR, 0)));
  await Promise.all(Array.from({ length: READERS }, () => readAll({ fd, requests, open })));
}

interface Device {
  fd: number;
  requests: Requests;
  open: OpenQuestions;
}

async function readAll(device: Device): Promise<void> {
  const { fd } = device;
  // A large question keeps its buffer until it is answered: the bytes of a write lie there.
  const free: Buffer[] = [];
  let large = 0;
  let turn = Promise.withResolvers<void>();
  const answerLarge = async (buffer: Buffer, bytes: number): Promise<void> => {
    large += 1;
    await answer(device, buffer.subarray(0, bytes));
    large -= 1;
    if (free.length < FREE_MAX) free.push(buffer);
    turn.resolve();
  };
  for (;;) {
    while (large >= LARGE_MAX) {
      turn = Promise.withResolvers<void>();
      await turn.promise;
    }
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(REQUEST_BYTES);
    const { error, bytes } = await readOnce(fd, buffer);
    if (error?.code === "ENODEV") return;
    if (error && !AGAIN.has(error.code ?? "")) throw error;
    if (!error && bytes > SMALL_BYTES) {
      void answerLarge(buffer, bytes);
      continue;
    }
    if (!error) void answer(device, Buffer.from(buffer.subarray(0, bytes)));
    free.push(buffer);
  }
}

async function answer({ fd, requests, open }: Device, bytes: Buffer): Promise<void> {
  const request = parseRequest(bytes);
  if (request.opcode === OPCODE.interrupt) return open.interrupt(request.args.subarray(0, 8));
  let body: Buffer | null = null;
  let errno = 0;
  open.add(request);
  try {
    body = request.opcode === OPCODE.init ? initAnswer(request.args) : await requests.answer(request);
  } catch (error) {
    errno = errnoOf(error);
  }
  const isOpen = open.end(request);
  if (!isOpen || (errno === 0 && body === null)) return;
  const header = answerHeader(request.unique, errno, body?.length ?? 0);
  write(fd, header, ...(body && body.length > 0 ? [body] : []));
}

function write(fd: number, ...parts: Buffer[]): void {
  try {
    writevSync(fd, parts);
  } catch {
    // The program that asked has ended, or the mount is gone; a reader notices that.
  }
}

function readOnce(fd: number, buffer: Buffer): Promise<{ error: NodeJS.ErrnoException | null; bytes: number }> {
  const { promise, resolve } = Promise.withResolvers<{ error: NodeJS.ErrnoException | null; bytes: number }>();
  read(fd, buffer, 0, buffer.length, null, (error, bytes) => resolve({ error, bytes }));
  return promise;
}
