/**
 * A Docker Engine of a test's own: its state lies in a temporary folder, and it leaves the machine's network and
 * firewall alone, since the driver gives workloads no network.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { closeAtEnd } from "../closing.ts";
import { debianEnv } from "../debian-packages.ts";

export interface TestEngine {
  /** DOCKER_HOST. */
  host: string;
  /** Every container, running or not, by name. */
  containers(): Promise<string[]>;
  /** Names of all volumes. */
  volumes(): Promise<string[]>;
  call(method: string, path: string): Promise<string>;
  stop(): Promise<void>;
}

/** An engine that is not up by then does not start at all. */
const LOOK_MS = 50;
const LOOKS = 2400;

export async function startEngine(root: string): Promise<TestEngine> {
  const dir = mkdtempSync(join(tmpdir(), "berth-dockerd-"));
  const socket = join(dir, "docker.sock");
  const child = spawn(
    "dockerd",
    [
      ...["--data-root", join(dir, "data"), "--exec-root", join(dir, "exec"), "-p", join(dir, "pid")],
      ...["-H", `unix://${socket}`, "--bridge=none", "--iptables=false", "--ip6tables=false"],
      ...["--ip-forward=false", "--ip-masq=false", "--log-level=warn", "--shutdown-timeout=1"],
    ],
    { env: debianEnv(root), stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-4000);
  });
  const closed = closeAtEnd(() => stop());
  const exited = once(child, "exit");
  const stop = async (): Promise<void> => {
    closed();
    if (isAlive(child)) child.kill("SIGTERM");
    await exited;
    rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  const call = (method: string, path: string): Promise<string> => callSocket(socket, method, path);
  for (let looks = 0; (await call("GET", "/_ping").catch(() => "")) !== "OK"; looks += 1) {
    if (looks > LOOKS || !isAlive(child)) {
      await stop();
      throw new Error(`dockerd did not start: ${said}`);
    }
    await delay(LOOK_MS);
  }
  return {
    host: `unix://${socket}`,
    call,
    containers: async () =>
      (JSON.parse(await call("GET", "/containers/json?all=1")) as { Names: string[] }[]).flatMap(({ Names }) => Names),
    volumes: async () =>
      ((JSON.parse(await call("GET", "/volumes")) as { Volumes: { Name: string }[] | null }).Volumes ?? []).map(
        ({ Name }) => Name,
      ),
    stop,
  };
}

const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;

function callSocket(socketPath: string, method: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path, headers: { host: "docker" } }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("error", reject).once("end", () => resolve(text));
    });
    outgoing.once("error", reject).end();
  });
}
