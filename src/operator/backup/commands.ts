/** `berth backup` and `berth restore`. */
import { existsSync, statSync } from "node:fs";
import { type CommandSpec, GROUPS, type Invocation, type OptionSpec, text } from "../../cli/command.ts";
import { nearestWord } from "../../lib/nearest-word.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { configOf, DATABASE, FORCE, say } from "../command-settings.ts";
import type { Teller } from "./everything.ts";

const group = GROUPS.operator;
const TARGET = { name: "target", about: "folder or s3://BUCKET/PREFIX (BERTH_BACKUP_TARGET)", optional: true };
const ID: OptionSpec = { flags: "--id <id>", about: "which backup; the newest when absent" };

export const backupCommands: readonly CommandSpec[] = [
  {
    name: "backup",
    group,
    summary: "write everything the platform knows into one file, or with all files to a folder or S3",
    details:
      "The server may be running. Records, people, keys and usage are in it. With --files also volumes, drives, sandboxes,\nsnapshots, images and uploaded archives, of all nodes: the target is then a folder or s3://BUCKET/PREFIX, and only what\nchanged since the last backup there is sent. Everything in it is sealed with the secret key.\nIn one file secrets stay sealed: the key is needed to restore them, and is in the file only with --with-key.",
    args: [{ name: "target", about: "file to write; with --files a folder or s3://BUCKET/PREFIX", optional: true }],
    options: [
      { flags: "--files", about: "also take all files" },
      { flags: "--keep <count>", about: "with --files: remove all but this many backups afterwards" },
      { flags: "--skip-lost", about: "with --files: leave out the files of nodes that are lost" },
      { flags: "--with-key", about: "put the key of the secrets into the file" },
      FORCE("replace the file if it exists"),
      ...DATABASE,
    ],
    examples: [
      "berth backup berth-backup.gz",
      "DATABASE_URL=postgres://… berth backup berth-backup.gz --with-key",
      "berth backup --files /mnt/backups --keep 7",
      "berth backup --files s3://backups/berth",
    ],
    run: async (call) => {
      const isFolder = call.options.files === true;
      refuseBareWord(text(call.args[0]), isFolder ? "folder" : "file");
      return isFolder ? backupFiles(call) : backupFile(call);
    },
    commands: [
      {
        name: "verify",
        group: GROUPS.verbs,
        summary: "read a whole backup with files, and say which folders could not be restored",
        details: "Nothing is changed. Ends with 1 when something is damaged or missing.",
        args: [TARGET],
        options: [ID, ...DATABASE],
        examples: ["berth backup verify /mnt/backups", "berth backup verify s3://backups/berth"],
        run: async (call) => {
          const { verifyBackup } = await import("./verify.ts");
          const { config, target, tell } = given(call);
          return say(call, await verifyBackup({ config, target, id: text(call.options.id), tell }));
        },
      },
      {
        name: "list",
        group: GROUPS.verbs,
        summary: "list the backups with files in a folder or S3",
        args: [TARGET],
        options: DATABASE,
        examples: ["berth backup list /mnt/backups"],
        run: async (call) => {
          const { backupLines } = await import("./listing.ts");
          const { config, target } = given(call);
          return say(call, await backupLines(config, target));
        },
      },
    ],
  },
  {
    name: "restore",
    group,
    summary: "fill an empty platform from a backup",
    details:
      "All of it or nothing. A backup of SQLite can be restored into PostgreSQL and the other way round.\nFrom a backup with files, this machine becomes the node whose files it gets.",
    args: [{ name: "source", about: "a file, folder or s3://BUCKET/PREFIX from `berth backup`", optional: true }],
    options: [
      ID,
      { flags: "--node <name>", about: "whose files to restore, when the backup has several nodes" },
      { flags: "--files-only", about: "leave the database as it is: it came with the files of another node" },
      FORCE("replace everything that is there"),
      ...DATABASE,
    ],
    examples: [
      "BERTH_DATA=/srv/berth berth restore berth-backup.gz",
      "BERTH_DATA=/srv/berth berth restore /mnt/backups",
      "BERTH_DATA=/srv/berth berth restore s3://backups/berth --node left",
    ],
    run: async (call) => {
      const { config, target, tell } = given(call);
      const { id, node, filesOnly, force } = call.options;
      if (target !== undefined && isOneFile(target)) {
        const { restoreFrom } = await import("./one-file.ts");
        return say(call, await restoreFrom({ config, file: target, force: force === true }));
      }
      const { restoreEverything } = await import("./restore-everything.ts");
      const chosen = { id: text(id), node: text(node), filesOnly: filesOnly === true, force: force === true };
      return say(call, await restoreEverything({ config, target, tell, ...chosen }));
    },
  },
];

const isOneFile = (target: string): boolean =>
  !target.startsWith("s3://") && !(existsSync(target) && statSync(target).isDirectory());

/** A mistyped command would otherwise become the name of a backup. */
function refuseBareWord(target: string | undefined, noun: "file" | "folder"): void {
  if (target === undefined || /[./]/.test(target) || existsSync(target)) return;
  const commands = backupCommands.flatMap(({ name, commands: below }) => (name === "backup" ? (below ?? []) : []));
  const near = nearestWord(
    target,
    commands.map(({ name }) => name),
  );
  const named = `or a ${noun} of that name write ./${target}`;
  throw near === null
    ? new UsageError(`${target} is a bare word, which may be a mistake.`, `f${named}`)
    : new UsageError(`There is no \`berth backup ${target}\`.`, `did you mean \`berth backup ${near}\`? F${named}`);
}

async function backupFile(call: Invocation): Promise<undefined> {
  const { withKey, force, keep, skipLost } = call.options;
  const file = text(call.args[0]);
  if (file === undefined) throw new UsageError("The file to write is missing.", "berth backup berth-backup.gz");
  if (keep !== undefined || skipLost !== undefined) throw new UsageError("--keep and --skip-lost need --files.");
  const { backupTo } = await import("./one-file.ts");
  const flags = { withKey: withKey === true, force: force === true };
  return say(call, await backupTo({ config: configOf(call), file, ...flags }));
}

async function backupFiles(call: Invocation): Promise<undefined> {
  const { withKey, force, keep, skipLost } = call.options;
  if (withKey === true || force === true)
    throw new UsageError(
      "--with-key and --force are for a backup in one file.",
      "backups with files are sealed with the key, so keep a copy of the key elsewhere; none of them is replaced",
    );
  const count = keep === undefined ? undefined : Number(keep);
  if (count !== undefined && !(Number.isInteger(count) && count >= 1))
    throw new UsageError("--keep takes a number of backups, from 1 on.");
  const { backupEverything } = await import("./everything.ts");
  const { config, target, tell } = given(call);
  return say(call, await backupEverything({ config, target, keep: count, skipLost: skipLost === true, tell }));
}

/** A line that changes once a second is quick enough to read. */
const SHOW_MS = 250;

const given = (call: Invocation) => ({
  config: configOf(call),
  target: text(call.args[0]),
  tell: process.stderr.isTTY ? terminalTeller(call) : quietTeller(call),
});

const quietTeller = ({ context }: Invocation): Teller => ({ progress: () => {}, note: (line) => context.note(line) });

/** One line that is written again and again, and gone when the command ends. */
function terminalTeller({ context }: Invocation): Teller {
  let shownAt = 0;
  const clear = (): boolean => process.stderr.write("\r\x1b[K");
  process.once("exit", clear);
  return {
    progress(line) {
      if (performance.now() - shownAt < SHOW_MS) return;
      shownAt = performance.now();
      clear();
      process.stderr.write(line.slice(0, Math.max(20, (process.stderr.columns ?? 80) - 1)));
    },
    note(line) {
      clear();
      context.note(line);
    },
  };
}
