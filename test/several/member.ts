/** One server of several: a process of its own with a data folder and a machine of its own, on the database of all. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { closeAtEnd } from "../closing.ts";
import { caller, TEST_KEY, type TestPlatform } from "../platform.ts";
import { type ServerProcess, startServer } from "../server-process.ts";
import { type Running, runningOn, strayGroupsOn } from "./what-runs.ts";

const execute = promisify(execFile);

export interface Member {
  readonly name: string;
  readonly dataDir: string;
  /** The id in its node.json. */
  readonly id: string;
  readonly url: string;
  readonly isUp: boolean;
  /** Resolves when the server answers and its machine can run workloads. */
  start(env?: Record<string, string>): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** A management request in the workspace `main`. */
  call: TestPlatform["call"];
  /** A request to a workload, such as "sandboxes/box/process". */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Workloads whose processes live on its machine. */
  running(): Running[];
  /** Control groups of its machine that have processes and belong to no workload. */
  strayGroups(): string[];
  /** A command of the operator on its data folder, or of its client. */
  berth(...args: string[]): Promise<{ stdout: string; stderr: string }>;
  /** Ends the server and its workloads, and removes its folder. */
  remove(): Promise<void>;
}

export interface MemberOptions {
  name: string;
  databaseUrl: string;
  env: Record<string, string>;
  /** Waits until the machine of the server with this id can run workloads. */
  isAble(id: string): Promise<unknown>;
  /** Default: what runs on the member's own machine. */
  running?: ((dataDir: string) => Running[]) | undefined;
}

export function makeMember({ name, databaseUrl, env: given, isAble, running = runningOn }: MemberOptions): Member {
  const dataDir = mkdtempSync(join(tmpdir(), `berth-${name}-`));
  let server: ServerProcess | null = null;
  let url = "";
  const env = {
    BERTH_SECRET_KEY: "one key for all servers of one database",
    BERTH_NODE_NAME: name,
    BERTH_DISK_FREE_MIN: "0",
    BERTH_DISK_RESERVE: "0",
    ...given,
  };
  const settings = { ...env, PATH: process.env.PATH, HOME: dataDir, BERTH_DATA: dataDir, DATABASE_URL: databaseUrl };
  const member: Member = {
    name,
    dataDir,
    get id() {
      return (JSON.parse(readFileSync(join(dataDir, "node.json"), "utf8")) as { id: string }).id;
    },
    get url() {
      assert.ok(url !== "", `${name} was never started`);
      return url;
    },
    get isUp() {
      return server !== null;
    },
    async start(more = {}) {
      assert.ok(!server, `${name} runs already`);
      server = await startServer({ dataDir, databaseUrl, env: { ...env, ...more } });
      url = server.url;
      await isAble(member.id);
    },
    async kill(signal = "SIGKILL") {
      const ending = server;
      server = null;
      await ending?.kill(signal);
    },
    call: (method, path, options) => caller(member.url)(method, path, { workspace: "main", ...options }),
    ask: (path, init = {}) =>
      fetch(`${member.url}/main/${path}`, {
        ...init,
        headers: { "x-service-authorization": `Bearer ${TEST_KEY}`, ...init.headers },
      }),
    running: () => running(dataDir),
    strayGroups: () => strayGroupsOn(dataDir),
    berth: (...args) =>
      execute(process.execPath, [join(import.meta.dirname, "../../bin/berth.js"), ...args], {
        env: { ...settings, BERTH_URL: url, BERTH_API_KEY: TEST_KEY, BERTH_WORKSPACE: "main" },
      }),
    async remove() {
      closed();
      await member.berth("down", "--purge", "--yes");
      server = null;
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  const closed = closeAtEnd(() => member.remove());
  return member;
}
