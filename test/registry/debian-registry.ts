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
import { digestOf, type FakeRegistry } from "./fake-registry.ts";

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
    push: (source, name) => push(host, source, name),
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

async function push(host: string, source: FakeRegistry, name: string): Promise<void> {
  const [repository = "", tag = ""] = name.split(":");
  const base = `http://${host}/v2/${repository}`;
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const answer = await fetch(url, { ...init, headers: { authorization: auth, ...init.headers } });
    if (!answer.ok) throw new Error(`${init.method} ${url}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const manifest = source.blobs.get(source.tags.get(name) ?? "");
  if (!manifest) throw new Error(`there is no ${name}`);
  const { mediaType, config, layers } = JSON.parse(manifest.toString("utf8"));
  for (const { digest } of [config, ...layers]) {
    const bytes = source.blobs.get(digest) ?? Buffer.alloc(0);
    const begun = await send(`${base}/blobs/uploads/`, { method: "POST" });
    const url = new URL(begun.headers.get("location") ?? "", base);
    url.searchParams.set("digest", digestOf(bytes));
    const headers = { "content-type": "application/octet-stream" };
    await send(url.href, { method: "PUT", body: new Uint8Array(bytes), headers });
  }
  const body = new Uint8Array(manifest);
  await send(`${base}/manifests/${tag}`, { method: "PUT", body, headers: { "content-type": mediaType } });
}
