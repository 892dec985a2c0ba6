/** MinIO as the reference of S3: a real server on the same disk. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../test/free-port.ts";
import { type Bucket, openBucket } from "./bucket.ts";

const START_TRIES = 200;

/** Null, with a line that says why, where there is no MinIO. */
export async function startMinio(dir: string, program: string): Promise<(Bucket & AsyncDisposable) | null> {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
  } catch {
    console.log("MinIO: skipped; `go install github.com/minio/minio@latest`, then --minio=PATH or a place in PATH");
    return null;
  }
  mkdirSync(dir, { recursive: true });
  const address = `127.0.0.1:${await freePort()}`;
  const [user, password] = ["bench-user", "bench-password"];
  const child = spawn(program, ["server", dir, "--address", address, "--quiet"], {
    stdio: "ignore",
    env: { PATH: process.env.PATH, HOME: dir, MINIO_ROOT_USER: user, MINIO_ROOT_PASSWORD: password },
  });
  const bucket = openBucket({
    ...{ endpoint: `http://${address}`, bucket: "bench", region: "us-east-1" },
    ...{ accessKeyId: user, secretAccessKey: password },
  });
  const stop = async (): Promise<void> => {
    await bucket.close();
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  for (let tries = 1; ; tries++) {
    try {
      await bucket.ask("PUT", "");
      return { ...bucket, [Symbol.asyncDispose]: stop };
    } catch (error) {
      if (tries === START_TRIES) {
        await stop();
        throw error;
      }
      await pause(100);
    }
  }
}
