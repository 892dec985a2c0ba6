/**
 * A client of one bucket, with the requests that backups and shared files need. Bodies are held in memory: callers send chunks.
 * A request that fails by the network or with a status of 500 and above is sent again; every one of them may be.
 */
import { setTimeout as pause } from "node:timers/promises";
import { request } from "undici";
import {
  ALGORITHM,
  canonicalRequest,
  encoded,
  scopeText,
  sha256,
  signatureOf,
  signingKey,
  stringToSign,
} from "../signature/canonical.ts";
import { childrenOf, textOf as memberOf, readXml } from "../wire/xml-reader.ts";

export interface S3ClientOptions {
  /** Origin of the server; the bucket is the first part of the path. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
  answerBytesMax: number;
}

export interface S3Entry {
  key: string;
  modifiedMs: number;
}

export type S3Client = ReturnType<typeof openS3Client>;

const TRIES_MAX = 5;
const FIRST_PAUSE_MS = 200;
/** Without a byte for this long the server counts as gone. */
const SILENCE_MS = 60_000;
const ERROR_TEXT_MAX = 300;

/** An answer that is no success, or none at all (status 0). */
export class S3Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface Ask {
  method: "GET" | "PUT" | "DELETE";
  key: string;
  query?: readonly (readonly [string, string])[];
  headers?: Record<string, string>;
  body?: Buffer;
}

interface Answer {
  status: number;
  body: Buffer;
}

export function openS3Client(options: S3ClientOptions) {
  async function ask(asked: Ask): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      const answer = await once(options, asked).catch((error: Error) => error);
      const isOver = !(answer instanceof Error) && answer.status < 500;
      if (isOver) return answer;
      if (tries === TRIES_MAX) {
        if (answer instanceof Error)
          throw new S3Refusal(0, `The S3 server at ${options.endpoint} does not answer: ${answer.message}`);
        return answer;
      }
      await pause(FIRST_PAUSE_MS * 2 ** (tries - 1));
    }
  }

  return {
    /** False when `onlyNew` was asked for and the object is there. */
    async put(key: string, body: Buffer, { onlyNew = false } = {}): Promise<boolean> {
      const headers: Record<string, string> = onlyNew ? { "if-none-match": "*" } : {};
      const answer = await ask({ method: "PUT", key, body, headers });
      if (onlyNew && (answer.status === 412 || answer.status === 409)) return false;
      refuse(answer, `PUT ${key}`);
      return true;
    },
    /** Null when there is no such object. */
    async get(key: string): Promise<Buffer | null> {
      const answer = await ask({ method: "GET", key });
      if (answer.status === 404 && !textOf(answer).includes("NoSuchBucket")) return null;
      refuse(answer, `GET ${key}`);
      return answer.body;
    },
    async *list(prefix: string): AsyncGenerator<string> {
      for await (const { key } of this.entries(prefix)) yield key;
    },
    async *entries(prefix: string): AsyncGenerator<S3Entry> {
      for (let token: string | undefined; ; ) {
        const next: [string, string][] = token === undefined ? [] : [["continuation-token", token]];
        const answer = await ask({ method: "GET", key: "", query: [["list-type", "2"], ["prefix", prefix], ...next] });
        refuse(answer, "the list of objects");
        const page = pageIn(answer.body);
        yield* page.entries;
        if (page.next === undefined) return;
        if (page.next === token) throw new S3Refusal(0, "The S3 server gives the same page of its list again.");
        token = page.next;
      }
    },
    async remove(key: string): Promise<void> {
      const answer = await ask({ method: "DELETE", key });
      if (answer.status !== 404) refuse(answer, `DELETE ${key}`);
    },
  };
}

function refuse(answer: Answer, what: string): void {
  if (answer.status >= 200 && answer.status < 300) return;
  throw new S3Refusal(answer.status, `The S3 server refuses ${what} with ${answer.status}: ${textOf(answer)}`);
}

/** The reason as S3 servers say it, or the begin of another answer. */
function textOf({ body }: Answer): string {
  try {
    const error = readXml(body.toString("utf8"));
    return `${memberOf(error, "Code")}: ${memberOf(error, "Message")}`;
  } catch {
    return body.toString("utf8", 0, ERROR_TEXT_MAX);
  }
}

function pageIn(body: Buffer): { entries: S3Entry[]; next: string | undefined } {
  const page = readXml(body.toString("utf8"));
  const entries = childrenOf(page, "Contents").map((each) => ({
    key: memberOf(each, "Key") ?? "",
    modifiedMs: Date.parse(memberOf(each, "LastModified") ?? ""),
  }));
  const isCut = memberOf(page, "IsTruncated") === "true";
  return { entries, next: isCut ? memberOf(page, "NextContinuationToken") : undefined };
}

async function once(options: S3ClientOptions, { method, key, query = [], headers = {}, body }: Ask): Promise<Answer> {
  const { endpoint, bucket, answerBytesMax } = options;
  const path = `/${bucket}${key === "" ? "" : `/${key}`}`;
  const url = new URL(endpoint);
  const signed = signedHeaders(options, { method, path, query, body }, { host: url.host, ...headers });
  const words = query.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
  const answer = await request(`${url.origin}${encoded(path, "/")}${words === "" ? "" : `?${words}`}`, {
    ...{ method, headers: signed, body: body ?? null },
    ...{ headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS },
  });
  const pieces: Buffer[] = [];
  let left = answerBytesMax;
  for await (const piece of answer.body as AsyncIterable<Buffer>) {
    left -= piece.length;
    if (left < 0) throw new S3Refusal(0, `The S3 server answers with more than ${answerBytesMax} bytes.`);
    pieces.push(piece);
  }
  return { status: answer.statusCode, body: Buffer.concat(pieces) };
}

function signedHeaders(
  { region, accessKeyId, secretAccessKey, sessionToken }: S3ClientOptions,
  {
    method,
    path,
    query = [],
    body,
  }: Omit<Ask, "key" | "headers" | "body"> & { path: string; body: Buffer | undefined },
  given: Record<string, string>,
): Record<string, string> {
  const time = new Date().toISOString().replace(/[-:]|\.\d{3}/g, "");
  const scope = { date: time.slice(0, 8), region, service: "s3" };
  const payloadHash = sha256(body ?? "");
  const headers: Record<string, string> = {
    ...given,
    "x-amz-content-sha256": payloadHash,
    "x-amz-date": time,
    ...(sessionToken === undefined ? {} : { "x-amz-security-token": sessionToken }),
  };
  const names = Object.keys(headers).sort();
  const canonical = canonicalRequest({
    ...{ method, path, query, signedHeaders: names, payloadHash },
    headers: new Map(Object.entries(headers).map(([name, value]) => [name, [value]])),
  });
  const signature = signatureOf(signingKey(secretAccessKey, scope), stringToSign(canonical, time, scope));
  const credential = `Credential=${accessKeyId}/${scopeText(scope)}`;
  return {
    ...headers,
    authorization: `${ALGORITHM} ${credential}, SignedHeaders=${names.join(";")}, Signature=${signature}`,
  };
}
