/** `berth up`: argv → configuration → app → signal → stop. Loads nothing that a server does not need. */
import { join } from "node:path";
import pino, { type Logger } from "pino";
import type { App } from "../app.ts";
import { type Config, consoleBaseOf, describeConfig, loadConfig, onStopOf } from "../config.ts";
import { SHARING_ADVICE, sharedWithWorkloads } from "../contract/console.ts";
import { credentialsFile, readCredentials, writeCredentials } from "../lib/credentials.ts";
import type { TakenPort } from "../lib/network/held-port.ts";
import { isEveryAddress } from "../lib/network/own-address.ts";
import {
  leaveNote,
  leaveWish,
  type ProcessIdentity,
  RESTART_EDGES,
  ROTATE_SIGNAL,
  takeWish,
  wishFor,
} from "../lib/process-note.ts";
import { ROOT } from "../lib/root.ts";
import { settleMemory } from "../lib/settle-memory.ts";
import { terminalLog } from "../lib/terminal-log.ts";
import { toIso } from "../lib/time/clock.ts";
import { AUTHORITY_FILE, authorityFingerprint } from "../lib/x509/own-authority.ts";
import { END_WORKLOADS } from "./down.ts";
import { leftBehind, stopHint } from "./left-running.ts";
import { parseSettingFlags, settingsHelp } from "./setting-flags.ts";
import { endWithAttendant } from "./upgrade/attend.ts";
import { readUpgrade, UPGRADE_SIGNAL } from "./upgrade/record.ts";
import { removeUnfinishedVersions } from "./upgrade/unfinished.ts";
import { installation } from "./upgrade/versions.ts";
import { packageVersion } from "./version.ts";

/** Paths of log fields that may hold secrets. */
const REDACTED = ["headers.authorization", "*.secret", "*.password", "*.apiKey"];
/** Used only by `berth upgrade`, and not shown in help. */
const TAKE_OVER = "take-over";

export async function up(args: readonly string[]): Promise<void> {
  const { flags, switches } = parseSettingFlags(args, { command: "up", switches: ["check-config", "help", TAKE_OVER] });
  if (switches.has("help")) return console.log(UP_HELP);
  const config = loadConfig({ flags });
  if (switches.has("check-config")) return console.log(describeConfig(config));
  const file = process.stdout.isTTY ? null : pino.destination({ sync: false });
  const log = pino({ level: config.log_level, redact: REDACTED }, file ?? terminalLog(process.stdout));
  const wishes = signalWishes();
  const turn = switches.has(TAKE_OVER) ? await (await import("./upgrade/take-over.ts")).awaitTurn(config) : null;
  const attendant = turn?.attendant;
  const serving = await serve({ config, log, ...turn, attendant });
  if (turn) await (await import("./upgrade/take-over.ts")).finishTurn(serving.app);
  if (attendant) endWithAttendant(attendant, wishes.stop);
  settleMemory();
  removeUnfinishedVersions().catch((error: unknown) =>
    log.warn({ err: error }, "half of a version stays in versions/"),
  );
  const own = args.filter((arg) => arg !== `--${TAKE_OVER}`);
  const next = await serveUntilStopped({ config, log, args: own, attendant, wishes, serving });
  file?.flushSync();
  if (next !== null && !attendant) await (await import("./upgrade/attend.ts")).becomeAttendant(config.data, ...next);
}

interface Given {
  config: Config;
  log: Logger;
  attendant: ProcessIdentity | undefined;
}

interface Serving {
  app: App;
  removeNote(): void;
}

interface Start extends Given {
  port?: TakenPort;
  requireMachine?: boolean;
}

async function serve({ config, log, attendant, ...turn }: Start): Promise<Serving> {
  const { startApp } = await import("../app.ts"); // loaded late, so that a wrong flag is reported at once
  // When a start fails during an upgrade, its workloads must stay for the old version.
  const started: Config = turn.port ? { ...config, on_stop: "keep" } : config;
  const app = await startApp({ config: started, log, version: packageVersion(), ...turn });
  const note = { url: app.url, startedAt: toIso(Date.now()), version: packageVersion(), root: ROOT, attendant };
  let isExchanging = false;
  const rotate = (): void => {
    // A signal that comes meanwhile is about the key: `berth rotate-key` sends the same one.
    if (isExchanging || wishFor(config.data, process.pid, "edges") !== RESTART_EDGES) {
      app.rotateKey();
      return;
    }
    isExchanging = true;
    void exchangeEdges(config.data, app, log).finally(() => {
      isExchanging = false;
    });
  };
  process.on(ROTATE_SIGNAL, rotate);
  const takeNote = leaveNote(config.data, {
    ...note,
    rotatesKey: true,
    restartsEdges: app.edgePids().length > 0,
  });
  const removeNote = (): void => {
    process.off(ROTATE_SIGNAL, rotate);
    takeNote();
  };
  console.error(greeting(app, config, await consoleLines(app)));
  const shared = sharedWithWorkloads(consoleBaseOf(config, app.url));
  if (shared !== null) log.warn({ pages: app.pagesUrl }, SHARING_ADVICE[shared]);
  return { app, removeNote };
}

/** Removes the word that asked for it, or says in its place why it failed. */
async function exchangeEdges(dataDir: string, app: App, log: Logger): Promise<void> {
  try {
    await app.restartEdges();
    takeWish(dataDir, "edges");
  } catch (error) {
    log.error({ err: error }, "edge processes were not replaced");
    leaveWish(dataDir, process.pid, error instanceof Error ? error.message : String(error), "edges");
  }
}

/** The folder and process of the version that serves from then on, or null when the server has stopped. */
async function serveUntilStopped({
  wishes,
  args,
  ...given
}: Given & { args: readonly string[]; wishes: Wishes; serving: Serving }): Promise<[string, number] | null> {
  const { config, log, attendant } = given;
  let { serving } = given;
  while ((await wishes.next()) === "upgrade") {
    const record = readUpgrade(config.data);
    if (record?.state !== "asked") continue;
    const { switchVersion } = await import("./upgrade/switch.ts");
    const restart = async (port: TakenPort): Promise<void> => {
      serving = await serve({ config, log, attendant, port });
    };
    const child = await switchVersion({ config, log, args, attendant, record, ...serving, restart });
    if (child?.pid === undefined) continue;
    if (wishes.isStopAsked()) child.kill("SIGTERM");
    return [record.to.root, child.pid];
  }
  log.info({}, "stopping");
  // `berth down` ends the workloads too, whatever on_stop says.
  const onStop = takeWish(config.data) === END_WORKLOADS ? "end" : onStopOf(config);
  await serving.app.stop(onStop);
  serving.removeNote();
  const left = await leftBehind(config, onStop);
  if (left !== null) console.error(left);
  return null;
}

/**
 * The link signs in, so it is printed where somebody looks: at the first start, as the key is, and at a terminal. A log
 * that goes on being written gets the address alone.
 */
async function consoleLines({ pagesUrl, bootstrapped, consoleLink }: App): Promise<string[]> {
  const link = bootstrapped.newKey !== null || process.stderr.isTTY ? await consoleLink() : null;
  if (link === null) return [`  Console    ${pagesUrl}   (sign in, or \`berth open\`)`];
  return [`  Console    ${link}`, "             (works once, for 30 minutes; `berth open` makes another)"];
}

function greeting(
  { url, pagesUrl, bootstrapped: { newKey, workspace: first } }: App,
  config: Config,
  consoleShown: readonly string[],
): string {
  // The first workspace is named only at the first start; later the setting may name one that does not exist.
  const workspace = (newKey ? null : readCredentials(config.data)?.workspace) ?? first;
  writeCredentials(config.data, { url, workspace, ...(newKey ? { apiKey: newKey } : {}) });
  return [
    "",
    `  Berth ${packageVersion()} is ready`,
    ...upgradedLine(),
    "",
    `  API        ${url}/v0`,
    `  Run        ${url}`,
    ...consoleShown,
    `  Reference  ${pagesUrl}/docs`,
    ...guessedAddress(config),
    ...authorityLines(config),
    `  Workspace  ${workspace}`,
    `  API key    ${keyLine(newKey, config)}`,
    `  Data       ${config.database_url ? `PostgreSQL, and ${config.data}` : config.data}`,
    "",
    `  ${stopHint(config)}`,
    "  Try: npx berth --help",
    "",
  ].join("\n");
}

/** After an upgrade: npm's own line names the version of the folder that was installed first. */
function upgradedLine(): string[] {
  const { base } = installation();
  return base === ROOT ? [] : [`  in ${ROOT}, in place of ${packageVersion(base)}, which \`npm start\` names`];
}

/** A warning that links, sign-in and the CLI use this machine's own address, which may differ from the clients' one. */
const guessedAddress = ({ host, public_url: told }: Config): string[] =>
  isEveryAddress(host) && !told
    ? [
        `             The server listens on every address (${host}) and tells clients this machine's own.`,
        "             Set BERTH_PUBLIC_URL if clients use another address.",
      ]
    : [];

/** People compare the fingerprint before they trust the authority. */
const authorityLines = ({ tls, data }: Config): string[] =>
  tls === "auto"
    ? [
        `  Authority  SHA-256 ${authorityFingerprint(data)}`,
        `             This server signs its own certificates; the authority is ${join(data, AUTHORITY_FILE)}.`,
      ]
    : [];

/** A key that the operator supplied is not shown: the operator knows it, and terminals may be recorded. */
function keyLine(newKey: string | null, config: Config): string {
  const file = credentialsFile(config.data);
  if (newKey)
    return config.api_key ? `from BERTH_API_KEY, kept in ${file}` : `${newKey}   (shown once, kept in ${file})`;
  return readCredentials(config.data)?.apiKey
    ? `in ${file}`
    : "one that you have; if it is lost, start once with BERTH_API_KEY set to add another";
}

/** npm forwards a signal that the terminal has already sent; a repeat within this time counts as the same signal. */
const SAME_SIGNAL_MS = 1000;

interface Wishes {
  /** Resolves once for every upgrade; after the first request to stop always "stop". */
  next(): Promise<"stop" | "upgrade">;
  isStopAsked(): boolean;
  stop(): void;
}

/** The first signal lets requests in flight finish; a later one does not wait for them. */
function signalWishes(): Wishes {
  let [askedAt, upgrades]: [number | null, number] = [null, 0];
  let wake = (): void => {};
  const stop = (): void => {
    askedAt ??= performance.now();
    wake();
  };
  const onSignal = (): void => {
    if (askedAt !== null && performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
    stop();
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  process.on(UPGRADE_SIGNAL, () => {
    upgrades += 1;
    wake();
  });
  return {
    stop,
    isStopAsked: () => askedAt !== null,
    async next() {
      while (askedAt === null && upgrades === 0)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      if (askedAt !== null) return "stop";
      upgrades -= 1;
      return "upgrade";
    },
  };
}

const UP_HELP = [
  "Usage: berth up [flags]",
  "",
  "Starts the server: API, gateway and console on one port. Flags beat the environment, which beats the file",
  "given by --config (default: berth.toml in the data folder).",
  "",
  settingsHelp(),
  "",
  "  --check-config          Print what is in force, secrets hidden, and exit.",
  "  -h, --help              Show this.",
  "",
  "Examples:",
  "  berth up",
  "  berth up --port 9000 --data /srv/berth",
  "  DATABASE_URL=postgres://berth@db/berth berth up --check-config",
].join("\n");
