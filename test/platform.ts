/**
 * The whole platform in this process, on a free port, with a data folder of its own.
 *
 *   await using platform = await startTestPlatform();
 *   const { status, body } = await platform.call("POST", "/drives", { body: { metadata: { name: "d" }, spec: {} } });
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import pino from "pino";
import type { App } from "../src/app.ts";
import type { Config } from "../src/config.ts";
import type { TakenPort } from "../src/lib/network/held-port.ts";
import type { Clock } from "../src/lib/time/clock.ts";
import type { Driver } from "../src/node/driver.ts";
import type { Body } from "./answers/body.ts";
import { closeAtEnd } from "./closing.ts";

export const NEWEST = "2026-04-28";

export interface CallOptions {
  body?: unknown;
  /** Bearer credential; null sends none. Defaults to the admin's key. */
  key?: string | null;
  headers?: Record<string, string>;
  /** Behaviour version; null leaves the header out. Defaults to the newest. */
  version?: string | null;
  workspace?: string;
}

export interface Answer<T = Body> {
  status: number;
  /** An answer without content has null here. */
  body: T;
  headers: Headers;
}

export interface TestPlatform extends AsyncDisposable {
  app: App;
  url: string;
  apiKey: string;
  dataDir: string;
  call<T = Body>(method: string, path: string, options?: CallOptions): Promise<Answer<T>>;
  /** A connection from inside the workload with this uid, once the fake machine is open. */
  enterFrom(uid: string, socket: Duplex): void;
  stop(): Promise<void>;
}

export interface TestPlatformOptions {
  databaseUrl?: string | null;
  dataDir?: string;
  config?: Partial<Record<keyof Config, string>>;
  clock?: Clock;
  /** Where workloads run: a fake by default, "real" for this machine's own driver. */
  driver?: Driver | "real";
  /** The port of an earlier platform. */
  port?: TakenPort;
}

/** What the fake machine has beside its base image. */
const IMAGES = ["service/base-image:latest", "service/py-app:latest"];

export const TEST_KEY = "test-admin-key-0123456789";

export async function startTestPlatform({
  databaseUrl,
  dataDir,
  config: overrides,
  clock,
  driver,
  port,
}: TestPlatformOptions = {}): Promise<TestPlatform> {
  // Loaded here: many files need only the client below, and the platform takes a second.
  const [{ startApp }, { loadConfig }, { FakeMachine, fakeDriver }] = await Promise.all([
    import("../src/app.ts"),
    import("../src/config.ts"),
    import("./fake-driver.ts"),
  ]);
  const dir = dataDir ?? mkdtempSync(join(tmpdir(), "berth-test-"));
  const flags = {
    port: "0",
    data: dir,
    "api-key": TEST_KEY,
    "log-level": "silent",
    // Tests run on machines with little room, too; those about a full disk say how much they want.
    "disk-free-min": "0",
    "disk-reserve": "0",
    // No sandbox of a test sleeps early because the machine is short of memory; those about that say so.
    "memory-free-min": "0",
    // Sandboxes that nobody asked for cost each suite a second; those about the pool say how many they want.
    "pool-size": "0",
    // Edge processes cost each suite some seconds; those about them say how many they want.
    "edge-processes": "0",
    // No test asks a registry of the internet; those about pulls name their own.
    registries: "none",
    ...(databaseUrl ? { "database-url": databaseUrl } : {}),
  };
  const kebab = Object.fromEntries(
    Object.entries(overrides ?? {}).map(([key, value]) => [key.replaceAll("_", "-"), value ?? ""]),
  );
  const config = loadConfig({ flags: { ...flags, ...kebab }, env: {}, home: dir });
  const machine = new FakeMachine({ images: [...IMAGES, `${config.brand}/base-image:latest`] });
  let enterFrom: TestPlatform["enterFrom"] = (_uid, socket) => void socket.destroy();
  const app = await startApp({
    config,
    log: pino({ level: config.log_level }),
    version: "0.0.0-test",
    ...(clock ? { clock } : {}),
    ...(port ? { port } : {}),
    ...(driver !== "real" && {
      async openDriver(doors) {
        enterFrom = (uid, socket) => doors.accept("platform", uid, socket);
        return driver ?? fakeDriver(machine);
      },
    }),
  });
  const stop = async (): Promise<void> => {
    closed();
    await app.stop();
    await machine.dispose();
    if (!dataDir) rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  };
  const closed = closeAtEnd(stop);
  return {
    app,
    url: app.listensAt,
    apiKey: TEST_KEY,
    dataDir: dir,
    call: caller(app.listensAt),
    enterFrom: (uid, socket) => enterFrom(uid, socket),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** A plain HTTP client for the management API; paths are below /v0. */
export const caller =
  (url: string) =>
  async <T = Body>(
    method: string,
    path: string,
    { body, key = TEST_KEY, headers, version = NEWEST, workspace }: CallOptions = {},
  ): Promise<Answer<T>> => {
    const response = await fetch(`${url}/v0${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(version === null ? {} : { "service-version": version }),
        ...(workspace === undefined ? {} : { "x-service-workspace": workspace }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    // An answer that goes on is left after its head.
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      await response.body?.cancel();
      return { status: response.status, body: JSON.parse("null"), headers: response.headers };
    }
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text || "null"), headers: response.headers };
  };
