/** Signs requests by hand, for what a stock client never sends. */
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import {
  ALGORITHM,
  canonicalRequest,
  encoded,
  scopeText,
  signatureOf,
  signingKey,
  stringToSign,
} from "../../src/s3/signature/canonical.ts";
import type { S3Keys } from "./bucket.ts";

export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

const timeOf = (nowMs: number): string => new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, "");

interface Presigning {
  seconds?: number;
  query?: Record<string, string>;
  nowMs?: number;
  /** Headers that are signed and have to be sent, by lower-case name. */
  signed?: Record<string, string>;
}

/** The path and query of a presigned request. */
export function presigned(
  keys: S3Keys,
  method: string,
  path: string,
  { seconds = 60, query = {}, nowMs = Date.now(), signed = {} }: Presigning = {},
): string {
  const headers = { host: new URL(keys.endpoint).host, ...signed };
  const signedHeaders = Object.keys(headers).sort();
  const time = timeOf(nowMs);
  const scope = { date: time.slice(0, 8), region: keys.region, service: "s3" };
  const pairs = Object.entries({
    ...query,
    "X-Amz-Algorithm": ALGORITHM,
    "X-Amz-Credential": `${keys.accessKeyId}/${scopeText(scope)}`,
    "X-Amz-Date": time,
    "X-Amz-Expires": String(seconds),
    "X-Amz-Security-Token": keys.sessionToken,
    "X-Amz-SignedHeaders": signedHeaders.join(";"),
  });
  const canonical = canonicalRequest({
    ...{ method, path, query: pairs, signedHeaders },
    payloadHash: signed["x-amz-content-sha256"] ?? query["X-Amz-Content-Sha256"] ?? "UNSIGNED-PAYLOAD",
    headers: new Map(Object.entries(headers).map(([name, value]) => [name, [value]])),
  });
  const signature = signatureOf(signingKey(keys.secretAccessKey, scope), stringToSign(canonical, time, scope));
  const text = [...pairs, ["X-Amz-Signature", signature]].map(
    ([name = "", value = ""]) => `${encoded(name)}=${encoded(value)}`,
  );
  return `${encoded(path, "/")}?${text.join("&")}`;
}

/** Sends a request as it is: no client normalises its path or headers. */
export function sendRaw(
  endpoint: string,
  method: string,
  path: string,
  { headers = {}, body = "" }: { headers?: Record<string, string>; body?: string } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(endpoint);
    const req = httpRequest({ host: hostname, port, method, path, headers, agent: false }, (res) => {
      const parts: Buffer[] = [];
      res.on("data", (part: Buffer) => parts.push(part));
      res.on("error", reject);
      res.on("end", () =>
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(parts).toString() }),
      );
    });
    req.on("error", reject);
    req.end(body);
  });
}
