/**
 * A real PostgreSQL for tests: the one named by BERTH_TEST_POSTGRES, or a private server started from the machine's
 * own binaries in a temporary folder. A fresh Debian has none; as root it is installed from the distribution.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { freePort } from "./free-port.ts";

/** Far longer than a start takes, also after a crash on a busy machine. */
const TRY_MS = 50;
const TRIES = 1800;

/** Tells the test files which database of the server has all tables (`database-template.ts`). */
export const TEMPLATE_VARIABLE = "BERTH_TEST_POSTGRES_TEMPLATE";

export interface TestPostgres {
  url: string;
  stop(): Promise<void>;
}

/** One that belongs to a test alone, which may bring it down. */
export interface PrivatePostgres extends TestPostgres {
  /** Ends it without warning and starts it again; resolves when it answers. */
  crash(): Promise<void>;
}

export type PostgresOrReason = TestPostgres | { reason: string };

export async function startPostgres(): Promise<PostgresOrReason> {
  const given = process.env.BERTH_TEST_POSTGRES;
  if (given === "none") return { reason: "BERTH_TEST_POSTGRES=none" };
  if (given) return { url: given, stop: async () => {} };
  const bin = findBinaries() ?? installBinaries();
  if (!bin)
    return {
      reason:
        "no PostgreSQL server found; install the Debian package postgresql, or set BERTH_TEST_POSTGRES=postgres://…",
    };
  return launch(bin);
}

export async function startPrivatePostgres(): Promise<PrivatePostgres | { reason: string }> {
  const bin = findBinaries();
  return bin ? launch(bin) : { reason: NO_BINARIES };
}

/** Why no private server can be had here; false where one can. */
export const privatePostgresMissing = (): string | false => (findBinaries() ? false : NO_BINARIES);

const NO_BINARIES = "no PostgreSQL server binaries found; install the Debian package postgresql";

/** A new database on the server, empty or a copy of another one; its url. */
export async function createDatabase(serverUrl: string, template?: string): Promise<string> {
  const name = `t${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}${template ? ` TEMPLATE ${template}` : ""}`);
  } finally {
    await client.end();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

function findBinaries(): string | null {
  const base = "/usr/lib/postgresql";
  const versions = existsSync(base)
    ? readdirSync(base)
        .map(Number)
        .filter((version) => version >= 15)
    : [];
  const newest = versions
    .sort((a, b) => b - a)
    .map((version) => join(base, String(version), "bin"))
    .find((bin) => existsSync(join(bin, "initdb")));
  if (newest) return newest;
  const onPath = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" }).stdout?.trim();
  return onPath && existsSync(join(onPath, "initdb")) ? onPath : null;
}

function installBinaries(): string | null {
  if (process.getuid?.() !== 0 || spawnSync("which", ["apt-get"]).status !== 0) return null;
  console.error("Installing PostgreSQL for the tests (apt-get install postgresql)…");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  spawnSync("apt-get", ["update", "-q"], { env });
  spawnSync("apt-get", ["install", "-y", "-q", "--no-install-recommends", "postgresql"], { env });
  return findBinaries();
}

async function launch(bin: string): Promise<PrivatePostgres> {
  const dir = mkdtempSync(join(tmpdir(), "berth-pg-"));
  // The server refuses to run as root, so root lends it another user.
  const user = process.getuid?.() === 0 ? postgresUser() : {};
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid ?? user.uid);
  const initdb = spawnSync(
    join(bin, "initdb"),
    ["-D", join(dir, "data"), "-U", "berth", "-A", "trust", "--no-locale", "-E", "UTF8"],
    { ...user, cwd: dir, encoding: "utf8" },
  );
  if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.stderr}`);
  const port = await freePort();
  const url = `postgres://berth@127.0.0.1:${port}/postgres`;
  const settings = [
    ...["listen_addresses=127.0.0.1", `unix_socket_directories=${dir}`, "max_connections=300"],
    // A process that is killed loses nothing without these, and a slow disk holds nobody up.
    ...["fsync=off", "full_page_writes=off"],
    // Hundreds of small databases: a worker visits one of them several times a second.
    "autovacuum=off",
  ];
  const args = ["-D", join(dir, "data"), "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const start = (): ChildProcess => spawn(join(bin, "postgres"), args, { ...user, cwd: dir, stdio: "ignore" });
  let server = start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null) await ended;
  };
  const stop = async (): Promise<void> => {
    await end("SIGINT");
    rmSync(dir, { recursive: true, force: true });
  };
  const answering = async (): Promise<void> => {
    for (let tries = 0; !(await answers(url)); tries += 1) {
      if (tries > TRIES || server.exitCode !== null) {
        await stop();
        throw new Error("the PostgreSQL test server did not start");
      }
      await delay(TRY_MS);
    }
  };
  await answering();
  const crash = async (): Promise<void> => {
    await end("SIGQUIT");
    server = start();
    await answering();
  };
  return { url, stop, crash };
}

function postgresUser(): { uid?: number; gid?: number } {
  const id = (flag: string): number => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}

async function answers(url: string): Promise<boolean> {
  const open = await new Promise<boolean>((resolve) => {
    const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
    socket.once("connect", () => socket.end());
  });
  if (!open) return false;
  const client = new pg.Client({ connectionString: url });
  return client.connect().then(
    async () => {
      await client.end();
      return true;
    },
    () => false,
  );
}
