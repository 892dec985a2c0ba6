/** `berth doctor`: checks everything a server needs, and says what to do about each problem. Changes nothing. */
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { getCACertificates } from "node:tls";
import { localAuthority } from "../cli/trusted-authorities.ts";
import { type Config, clientUrl, consoleBaseOf } from "../config.ts";
import { consoleHost, SHARING_ADVICE, sharedWithWorkloads } from "../contract/console.ts";
import { credentialsFile, readCredentials } from "../lib/credentials.ts";
import { type ProcessNote, runningNotes } from "../lib/process-note.ts";
import { MINUTE_MS, SECOND_MS, toIso } from "../lib/time/clock.ts";
import type { Probe } from "../node/driver.ts";
import { inspectDatabase } from "../store/database/inspect.ts";
import { missingPackages } from "./packages.ts";
import { probeIsolation } from "./runtime.ts";

export type State = "ok" | "warning" | "problem";

export interface Finding {
  check: string;
  state: State;
  says: string;
  /** What the operator should do about it. */
  next?: string;
  /** The command that does it, where one command is enough. */
  command?: string;
}

type Found = Omit<Finding, "check">;
/** `probe` tells what isolation this machine gives. */
type Check = (config: Config, probe: () => Promise<Probe>) => Promise<Found>;

const NODE_MAJOR_MIN = 24;
const DISK_PROBLEM_BYTES = 100 * 1024 ** 2;
const DISK_WARNING_BYTES = 2 * 1024 ** 3;
/** Type of a file system in memory, as statfs tells it. */
const TMPFS_MAGIC = 0x0102_1994;
/** Largest clock difference: cursors, tokens and leases compare times of several machines. */
const SKEW_MAX_MS = 5 * SECOND_MS;
/** A clock before this date is certainly wrong. */
const CLOCK_FLOOR_MS = Date.UTC(2026, 0, 1);
const ANSWER_MS = 10_000;

export const CHECKS: Readonly<Record<string, Check>> = {
  node: async () => {
    const isNew = Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN;
    return isNew
      ? ok(`${process.version}, ${process.platform}-${process.arch}`)
      : problem(`${process.version} is too old`, `install Node ${NODE_MAJOR_MIN} or newer, or run npm ci`);
  },

  "data folder": async ({ data }) => {
    const nearest = nearestExisting(data);
    try {
      accessSync(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    } catch {
      return problem(
        `${nearest} cannot be written by this user`,
        "change its owner, or choose another with BERTH_DATA",
      );
    }
    if (nearest !== data) return ok(`${data} will be made at the first start`);
    const open = statSync(data).mode & 0o077;
    return open === 0
      ? ok(data)
      : warning(`${data} can be entered by other users of this machine`, ...pasted(`chmod 700 ${data}`));
  },

  disk: async ({ data }) => {
    const { bavail, bsize, type } = statfsSync(nearestExisting(data));
    const free = bavail * bsize;
    const says = `${(free / 1024 ** 3).toFixed(1)} GB free`;
    if (free < DISK_PROBLEM_BYTES) return problem(says, `make room on the disk of ${data}`);
    if (type === TMPFS_MAGIC)
      return warning(
        `${data} lies in memory (tmpfs)`,
        "choose another with BERTH_DATA: a restart of the machine loses it",
      );
    return free < DISK_WARNING_BYTES ? warning(says, `make room on the disk of ${data} soon`) : ok(says);
  },

  database: async ({ data, database_url }) => {
    const { pending, broken } = await inspectDatabase({ databaseUrl: database_url ?? null, dataDir: data });
    const name = database_url ? "PostgreSQL" : "SQLite";
    if (broken) return problem(`${name}: ${broken}`, "restore a backup with `berth restore`");
    if (pending === null) return ok(`${name}: will be made at the first start`);
    return ok(
      pending === 0 ? `${name}: up to date` : `${name}: the next start brings it up to date (${pending} steps)`,
    );
  },

  "secret key": async ({ data, database_url }) => {
    const { rotation } = await inspectDatabase({ databaseUrl: database_url ?? null, dataDir: data });
    return rotation === null
      ? ok("no rotation is under way")
      : warning(
          `the rotation to the key ${rotation.to} has not ended (${rotation.resealed} values so far)`,
          "a running server goes on with it; otherwise run `berth rotate-key` again. No backup can be written before",
          "berth rotate-key",
        );
  },

  port: async ({ host, port, data }) => {
    const running = runningNotes(data);
    const mine = running.find((note) => Number(new URL(note.url).port) === port);
    if (mine) return ok(`${port} is used by this Berth ${aboutNote(mine)}`);
    // A running server has its port, whichever port the settings of this command name.
    if (running[0]) return ok(`this Berth runs at ${running[0].url} ${aboutNote(running[0])}`);
    const refusal = await tryListen(host, port);
    if (refusal === null) return ok(port === 0 ? "any free one" : `${port} on ${host} is free`);
    if (refusal === "EADDRINUSE")
      return problem(`${port} on ${host} is in use by another program`, "choose another with PORT or --port");
    return problem(`${port} on ${host} cannot be used (${refusal})`, "choose another with HOST, PORT or their flags");
  },

  pages: async (config) => {
    const base = consoleBaseOf(config, await clientUrl(config));
    const shared = sharedWithWorkloads(base);
    const [says = "", next = ""] = shared === null ? [] : SHARING_ADVICE[shared].split(": ");
    return shared === null ? ok(`${consoleHost(base)}, apart from workloads`) : warning(says, next);
  },

  credentials: async ({ data }) => {
    const file = credentialsFile(data);
    if (!existsSync(file)) return ok("will be written at the first start");
    if ((statSync(file).mode & 0o077) !== 0)
      return warning(`${file} can be read by other users`, ...pasted(`chmod 600 ${file}`));
    const { url, apiKey } = readCredentials(data) ?? {};
    if (!url || !apiKey) return warning(`${file} holds no key`, "start once with BERTH_API_KEY set to add one");
    if (!runningNotes(data).some((note) => note.url === url)) return ok(`${file} (not tried: no server is running)`);
    const status = await statusOf(`${url}/v0/workspaces`, apiKey, localAuthority(data));
    return status === 200
      ? ok(`${file}, accepted by ${url}`)
      : problem(
          `${url} answers ${status ?? "nothing"} to the key in ${file}`,
          "start once with BERTH_API_KEY set to add a new key",
        );
  },

  clock: async ({ data, database_url }) => {
    const now = Date.now();
    if (now < CLOCK_FLOOR_MS) return problem(`it shows ${toIso(now)}`, "set the clock, or start a time service");
    const skew = database_url ? await skewMs(database_url) : 0;
    if (skew > SKEW_MAX_MS) {
      const seconds = Math.round(skew / SECOND_MS);
      return problem(`it differs from the database's by ${seconds} s`, "start a time service on both machines");
    }
    const changed = existsSync(data) ? statSync(data).mtimeMs : 0;
    return changed > now + MINUTE_MS
      ? warning(
          `${data} was changed at ${toIso(changed)}, which is in the future`,
          "set the clock, or start a time service",
        )
      : ok(toIso(now));
  },

  isolation: async (_config, probe) => {
    const { grade, grades, missing } = await probe();
    if (grade === "none") return problem("this machine cannot isolate workloads", missing.join(" "));
    // Their programs do something only for root.
    const packages = process.getuid?.() === 0 ? missingPackages() : [];
    const command = packages.length === 0 ? undefined : `apt-get install ${packages.join(" ")}`;
    const install = command === undefined ? [] : [`On Debian: ${command}`];
    const more = grades.filter((each) => each !== grade).map((each) => `; on request '${each}'`);
    const says = [`grade '${grade}'`, ...more].join("");
    return missing.length === 0 ? ok(says) : warning(says, [...missing, ...install].join(" "), command);
  },
};

export async function examine(
  config: Config,
  each: (finding: Finding) => void = () => {},
  probe = () => probeIsolation(config),
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [check, look] of Object.entries(CHECKS)) {
    // A check that throws reports its error as the problem.
    const found = await look(config, probe).catch((error: unknown) =>
      problem((error as Error).message, AFTER_FAILURE[check]),
    );
    findings.push({ check, ...found });
    each({ check, ...found });
  }
  return findings;
}

const ok = (says: string): Found => ({ state: "ok", says });
const warning = (says: string, next: string, command?: string): Found => ({
  state: "warning",
  says,
  next,
  ...(command === undefined ? {} : { command }),
});
/** An advice that is the command itself. */
const pasted = (command: string): [next: string, command: string] => [command, command];
const problem = (says: string, next?: string): Found => ({
  state: "problem",
  says,
  ...(next ? { next } : {}),
});

/** What the operator should do when a check itself failed. */
const AFTER_FAILURE: Readonly<Record<string, string>> = {
  database: "correct DATABASE_URL, or start the database; `berth restore` brings back a lost one",
  "secret key": "see the database above",
  credentials: "remove the file; the next start writes it again",
  isolation: "workloads cannot run until this is solved; the API works without",
};

const aboutNote = ({ pid, startedAt }: ProcessNote): string => `(pid ${pid}, since ${startedAt})`;

const nearestExisting = (path: string): string => (existsSync(path) ? path : nearestExisting(dirname(path)));

/**
 * Difference between the database's clock and this machine's. A database that does not answer is another check's
 * problem.
 */
const skewMs = (databaseUrl: string): Promise<number> =>
  inspectDatabase({ databaseUrl, dataDir: "" }).then(
    ({ nowMs }) => Math.abs(Date.now() - (nowMs ?? Date.now())),
    () => 0,
  );

/** Why the address cannot be listened on, or null. */
const tryListen = (host: string, port: number): Promise<string | null> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(null)));
  });

/**
 * `authority`: that of the server on this machine. A server that asks itself made it after its own start, and trusts it
 * for nothing else.
 */
function statusOf(url: string, apiKey: string, authority: string | null): Promise<number | null> {
  const isTls = url.startsWith("https:");
  // Not imported: see lib/network/node-http.ts.
  const { request } = process.getBuiltinModule(isTls ? "node:https" : "node:http");
  const ca = isTls && authority !== null ? { ca: [...getCACertificates("default"), authority] } : {};
  const headers = { authorization: `Bearer ${apiKey}` };
  return new Promise((resolve) => {
    request(url, { headers, signal: AbortSignal.timeout(ANSWER_MS), agent: false, ...ca }, (response) => {
      resolve(response.statusCode ?? null);
      response.on("error", () => {}).destroy(); // the status is enough
    })
      .on("error", () => resolve(null))
      .end();
  });
}
