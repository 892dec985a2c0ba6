/**
 * Debian's `docker-registry` on loopback, with one user. A machine that cannot reach Debian's archive has none.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { closeAtEnd } from "../closing.ts";
import { unpackedDebian } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";
import type { FakeRegistry } from "./fake-registry.ts";
import { pushImage } from "./push-image.ts";

export const USER = { name: "ada", password: "registry-secret" };
/** `htpasswd -B` of the password above. */
const HASH = "$2y$05$abcdefghijklmnopqrstuubNCCgMNqYiQA5BMGxm7McAPft53drSm";
const TRY_MS = 50;
const TRIES = 1800;

export interface DebianRegistry extends AsyncDisposable {
  host: string;
  /** Sends what a test made in memory, as `docker push` does. */
  push(source: FakeRegistry, name: string): Promise<void>;
}

export async function startDebianRegistry(): Promise<DebianRegistry | { reason: string }> {
  const program = findProgram();
  if (program === null) {
    return { reason: "docker-registry is not there and could not be fetched from Debian's archive (apt-get download)" };
  }
  const dir = mkdtempSync(join(tmpdir(), "berth-registry-"));
  const host = `127.0.0.1:${await freePort()}`;
  writeFileSync(join(dir, "users"), `${USER.name}:${HASH}\n`);
  const settings = [
    "version: 0.1",
    "log: { level: error, accesslog: { disabled: true } }",
    `storage: { filesystem: { rootdirectory: ${join(dir, "data")} }, delete: { enabled: true } }`,
    `http: { addr: "${host}" }`,
    `auth: { htpasswd: { realm: test, path: ${join(dir, "users")} } }`,
  ];
  writeFileSync(join(dir, "config.yml"), `${settings.join("\n")}\n`);
  const server = spawn(program, ["serve", join(dir, "config.yml")], { cwd: dir, stdio: "ignore" });
  const exited = new Promise((resolve) => server.once("exit", resolve));
  const stop = async (): Promise<void> => {
    server.kill("SIGKILL");
    await exited;
    rmSync(dir, { recursive: true, force: true });
  };
  const closed = closeAtEnd(stop);
  for (let tries = 0; !(await answers(host)); tries += 1) {
    if (tries > TRIES || server.exitCode !== null) throw new Error("docker-registry did not start");
    await delay(TRY_MS);
  }
  return {
    host,
    push: (source, name) => pushImage(`http://${host}`, source, name, { authorization: auth }),
    async [Symbol.asyncDispose]() {
      closed();
      await stop();
    },
  };
}

const answers = (host: string): Promise<boolean> =>
  fetch(`http://${host}/v2/`).then(
    ({ status }) => status === 401,
    () => false,
  );

/** The machine's own, or the one of Debian's archive. */
function findProgram(): string | null {
  const path = "usr/bin/docker-registry";
  if (existsSync(`/${path}`)) return `/${path}`;
  const root = unpackedDebian("registry", ["docker-registry"]);
  return root === null ? null : join(root, path);
}

const auth = `Basic ${Buffer.from(`${USER.name}:${USER.password}`).toString("base64")}`;
