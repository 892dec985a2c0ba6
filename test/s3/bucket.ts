/** A platform with an S3 door, a drive, and the stock client of S3 for it. */
import { S3Client, type S3ClientConfig } from "@aws-sdk/client-s3";
import { caller, startTestPlatform, type TestPlatform, type TestPlatformOptions } from "../platform.ts";

export interface S3Keys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiration: string;
  endpoint: string;
  bucket: string;
  region: string;
}

export interface TestDoor extends AsyncDisposable {
  platform: TestPlatform;
  /** Makes a drive and answers with its record. */
  drive(name: string, spec?: object): Promise<{ uid: string; s3Url: string }>;
  keys(drive: string, key?: string): Promise<S3Keys>;
  client(keys: S3Keys, options?: S3ClientConfig): S3Client;
}

export async function openDoor(options: TestPlatformOptions = {}): Promise<TestDoor> {
  // With a domain the door answers on the server's own port.
  const config = options.config?.domain === undefined ? { s3_port: "0", ...options.config } : options.config;
  const platform = await startTestPlatform({ ...options, config });
  const clients: S3Client[] = [];
  const call: TestPlatform["call"] = (method, path, rest = {}) =>
    caller(platform.url.replace("https:", "http:"))(method, path, { workspace: "main", ...rest });
  return {
    platform,
    async drive(name, spec = {}) {
      const { body } = await call("POST", "/drives", { body: { metadata: { name }, spec } });
      return { uid: body.metadata.uid, s3Url: body.state.s3Url };
    },
    async keys(drive, key) {
      const { status, body } = await call<S3Keys>(
        "POST",
        `/drives/${drive}/s3-credentials`,
        key === undefined ? {} : { key },
      );
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
      return body;
    },
    client(keys, more = {}) {
      const client = new S3Client({
        endpoint: keys.endpoint,
        region: keys.region,
        credentials: { ...keys, expiration: new Date(keys.expiration) },
        maxAttempts: 1,
        ...more,
      });
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy();
      await platform.stop();
    },
  };
}
