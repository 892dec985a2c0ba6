/** Signed requests to one bucket. Bodies are not hashed: the client shares the machine with what it measures. */
import { Pool } from "undici";
import {
  ALGORITHM,
  canonicalRequest,
  encoded,
  scopeText,
  signatureOf,
  signingKey,
  stringToSign,
} from "../../src/s3/signature/canonical.ts";

export interface BucketKeys {
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export interface Bucket {
  /** Answers with the body of a success; anything else is thrown. `key` "" is the bucket itself. */
  ask(method: "GET" | "PUT", key: string, options?: { query?: [string, string][]; body?: Buffer }): Promise<Buffer>;
  /** The length of an object, which is read and not kept. */
  drain(key: string): Promise<number>;
  close(): Promise<void>;
}

export function openBucket(keys: BucketKeys): Bucket {
  const { host } = new URL(keys.endpoint);
  const pool = new Pool(keys.endpoint, { connections: 64 });
  const send = async (method: "GET" | "PUT", key: string, query: [string, string][], body?: Buffer) => {
    const path = `/${keys.bucket}${key === "" ? "" : `/${key}`}`;
    const words = query.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
    const answer = await pool.request({
      ...{ method, path: `${encoded(path, "/")}${words === "" ? "" : `?${words}`}`, body: body ?? null },
      headers: signed(keys, method, path, query, host),
    });
    if (answer.statusCode === 200) return answer.body;
    throw new Error(`${method} ${path}: ${answer.statusCode} ${await answer.body.text()}`);
  };
  return {
    async ask(method, key, { query = [], body } = {}) {
      return Buffer.from(await (await send(method, key, query, body)).arrayBuffer());
    },
    async drain(key) {
      let length = 0;
      for await (const chunk of await send("GET", key, [])) length += (chunk as Buffer).length;
      return length;
    },
    close: () => pool.destroy(),
  };
}

function signed(
  { region, accessKeyId, secretAccessKey, sessionToken }: BucketKeys,
  method: string,
  path: string,
  query: [string, string][],
  host: string,
): Record<string, string> {
  const time = new Date().toISOString().replace(/[-:]|\.\d{3}/g, "");
  const scope = { date: time.slice(0, 8), region, service: "s3" };
  const payloadHash = "UNSIGNED-PAYLOAD";
  const headers: Record<string, string> = {
    ...{ host, "x-amz-content-sha256": payloadHash, "x-amz-date": time },
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
