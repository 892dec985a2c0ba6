/** A real S3 server (the door of drives, over one folder), with a relay before it that can hold a request back for good. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { closeAtEnd } from "../closing.ts";

export interface HeldDoor extends AsyncDisposable {
  /** Settings that lead a backup to the bucket `bucket`. */
  env: Record<string, string>;
  /** Resolves when the given number of such requests have passed and the next one is held. */
  holdAfter(passing: number, isSuch: (method: string, path: string) => boolean): Promise<void>;
  /** Nothing is held any more. */
  letPass(): void;
}

export async function openHeldDoor(folder: string): Promise<HeldDoor> {
  const [files, work] = [join(folder, "files"), join(folder, "work")];
  for (const each of [files, work]) mkdirSync(each, { recursive: true });
  const door = spawn(process.execPath, [join(import.meta.dirname, "../s3/door-process.ts"), files, work], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = closeAtEnd(() => door.kill("SIGKILL"));
  const [port] = (await once(door.stdout, "data")) as [Buffer];
  let holds: (asked: IncomingMessage) => boolean = () => false;
  const relay = createServer((asked, answer) => {
    if (holds(asked)) return;
    const { method, url: path, headers } = asked;
    const passed = request({ host: "127.0.0.1", port: Number(port), method, path, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    asked.pipe(passed);
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  return {
    env: {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
      ...{ AWS_REGION: "local", AWS_ACCESS_KEY_ID: "KEY", AWS_SECRET_ACCESS_KEY: "secret", AWS_SESSION_TOKEN: "token" },
    },
    holdAfter(passing, isSuch) {
      const held = Promise.withResolvers<void>();
      let left = passing;
      holds = ({ method = "", url = "" }) => {
        if (!isSuch(method, url)) return false;
        left -= 1;
        if (left >= 0) return false;
        held.resolve();
        return true;
      };
      return held.promise;
    },
    letPass() {
      holds = () => false;
    },
    async [Symbol.asyncDispose]() {
      closed();
      door.kill("SIGKILL");
      relay.closeAllConnections();
      relay.close();
    },
  };
}
