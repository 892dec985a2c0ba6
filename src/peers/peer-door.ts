/** Answers the questions of other servers: one function for each path, JSON in, JSON or a stream out. */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { PlatformError } from "../contract/errors.ts";
import { textOf } from "./peers.ts";

/** Gets the question's body; `signal` aborts when the other server leaves. A Readable is sent as it is. */
export type PeerAnswer = (body: unknown, signal: AbortSignal) => Promise<unknown>;

/** Bytes of a question: the largest is a stored request with its body. */
const QUESTION_BYTES_MAX = 64 * 1024 * 1024;

/** Reads and writes until one side ends; rejects when there is nothing to talk about. */
export type PeerTalk = (input: Readable, output: Writable) => Promise<void>;

export function createPeerDoor(
  answers: Readonly<Record<string, PeerAnswer>>,
  talks: Readonly<Record<string, PeerTalk>> = {},
): RequestListener {
  const known = new Map(Object.entries({ "/ping": async () => null, ...answers }));
  const talking = new Map(Object.entries(talks));
  return (req, res) => {
    const talk = talking.get(req.url ?? "");
    if (talk) void converse(talk, req, res);
    else void serve(known, req, res);
  };
}

async function converse(talk: PeerTalk, req: IncomingMessage, res: ServerResponse): Promise<void> {
  res.writeHead(200).flushHeaders();
  try {
    await talk(req, res);
    res.end();
  } catch {
    res.destroy();
  }
}

async function serve(
  answers: ReadonlyMap<string, PeerAnswer>,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  res.once("close", () => gone.abort());
  try {
    const answer = answers.get(req.url ?? "");
    if (answer === undefined) throw new PlatformError("not_found", `This server knows no question ${req.url}.`);
    const text = await textOf(req, QUESTION_BYTES_MAX);
    const result = await answer(text === "" ? null : (JSON.parse(text) as unknown), gone.signal);
    if (result instanceof Readable) await pipeline(result, res);
    else res.end(JSON.stringify(result ?? null));
  } catch (error) {
    if (res.headersSent) res.destroy();
    else refuse(res, error);
  }
}

function refuse(res: ServerResponse, error: unknown): void {
  const { status, message } =
    error instanceof PlatformError ? error : { status: 500, message: "The other server failed to answer." };
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ message }));
}
