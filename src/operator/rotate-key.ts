/**
 * `berth rotate-key`: replaces the key that encrypts secrets. The owner of the database does the work: the running
 * server of a SQLite file, which this command signals and watches, and otherwise this process.
 */
import { setTimeout as pause } from "node:timers/promises";
import { rotateKey } from "../auth/rotate-key.ts";
import { readSecretKeys, secretKeyPlace, takeNextKey } from "../auth/secret-key.ts";
import { nextKeyFile, oldKeyFile } from "../auth/secret-key-files.ts";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import { isRunning, type ProcessNote, ROTATE_SIGNAL, runningNotes } from "../lib/process-note.ts";
import { fingerprintOf } from "../lib/sealed-box.ts";
import { UsageError } from "../lib/usage-error.ts";
import { nameOf, SEALED_COLUMNS } from "../store/sealing/sealed-columns.ts";
import { readKeyState } from "../store/sealing/watch-keys.ts";
import { withOwnStore } from "./own-store.ts";

const LOOK_MS = 100;
/** A server without progress for this long has a problem; its log says which. */
const STUCK_MS = 120_000;

export interface RotateCommand {
  config: Config;
  /** Called with what is being encrypted again. */
  note(line: string): void;
}

/** Returns the lines to show to the operator. */
export async function rotateSecretKey({ config, note }: RotateCommand): Promise<string[]> {
  const [before] = readSecretKeys(config).map(fingerprintOf);
  if (before === undefined)
    throw new PlatformError("not_found", `There is no platform in ${config.data}: it has no secret.key.`);
  const next = takeNextKey(config);
  if (next === null)
    throw new UsageError(
      "BERTH_SECRET_KEY_NEXT is not set.",
      "set it to the new key (32 characters or more) on every server, restart them, and run this again with both set",
    );
  const to = fingerprintOf(next);
  if (to === before) throw new UsageError("BERTH_SECRET_KEY_NEXT is the key in use.", "set it to another key");
  const tell = progressTeller(note);
  const server = config.database_url ? undefined : runningNotes(config.data)[0];
  if (server) await rotateInServer(config, server, { to, tell });
  else await rotateHere(config, { to, tell });
  return [`All secrets are sealed with the key ${to} (${secretKeyPlace(config)}).`, afterwards(config, before)];
}

const afterwards = (config: Config, before: string): string =>
  config.secret_key
    ? "Set BERTH_SECRET_KEY to the value of BERTH_SECRET_KEY_NEXT on every server, and take BERTH_SECRET_KEY_NEXT away. Keep the old value as long as you keep backups of before: they cannot be restored without it."
    : `The old key is in ${oldKeyFile(config.data, before)}. It opens nothing in the database any more. Backups of before cannot be restored without it: move it to where you keep the key of those, and remove it with the last of them.`;

interface Task {
  to: string;
  tell(column: string, resealed: number): void;
}

/** Shows one line per sealed column. */
function progressTeller(note: (line: string) => void): Task["tell"] {
  let last = "";
  return (column, resealed) => {
    if (column === last || column === "") return;
    last = column;
    const holds = SEALED_COLUMNS.find((each) => nameOf(each) === column)?.holds ?? column;
    note(`sealing ${holds} anew (${resealed} values so far)`);
  };
}

async function rotateHere(config: Config, { to, tell }: Task): Promise<void> {
  await withOwnStore(config, "rotating the secret key", async (store) => {
    const { unreadable } = await rotateKey(store, to, {
      onProgress: ({ column, resealed }) => tell(column, resealed),
    });
    if (unreadable > 0) throw left(unreadable);
  });
}

const left = (unreadable: number): PlatformError =>
  new PlatformError(
    "unprocessable",
    `The rotation is over, but ${unreadable === 1 ? "one value was" : `${unreadable} values were`} opened by no key, neither before nor now, and ${unreadable === 1 ? "stays as it is: its row is" : "stay as they are: their rows are"} damaged.`,
  );

async function rotateInServer(config: Config, server: ProcessNote, { to, tell }: Task): Promise<void> {
  if (!server.rotatesKey)
    throw new PlatformError(
      "conflict",
      `The server with pid ${server.pid} is of an older version, which cannot rotate keys. Restart it first.`,
    );
  process.kill(server.pid, ROTATE_SIGNAL);
  let seen = "";
  let until = performance.now() + STUCK_MS;
  for (;;) {
    const { fingerprint, rotation, ended } = readKeyState(config.data);
    if (fingerprint === to && rotation === null && readSecretKeys(config).length === (config.secret_key ? 2 : 1)) {
      if (ended?.to === to && ended.unreadable > 0) throw left(ended.unreadable);
      return;
    }
    const now = JSON.stringify(rotation);
    if (now !== seen) until = performance.now() + STUCK_MS;
    seen = now;
    if (rotation) tell(rotation.table, rotation.resealed);
    if (!isRunning(server))
      throw new PlatformError("unavailable", "The server ended before the rotation was over. Run this again to go on.");
    if (performance.now() > until)
      throw new PlatformError(
        "timeout",
        `The server with pid ${server.pid} makes no progress. Look at its log; the rotation goes on when the server can.${config.secret_key ? " It may have been started without BERTH_SECRET_KEY_NEXT." : ` The new key is in ${nextKeyFile(config.data)}.`}`,
      );
    await pause(LOOK_MS);
  }
}
