/** The commands about the server on this machine. Their code is loaded when a command runs. */
import { styleText } from "node:util";
import { type CommandSpec, GROUPS, type Invocation, type OptionSpec, type OptionValue, text } from "../cli/command.ts";
import { EXIT } from "../cli/failure.ts";
import type { Config } from "../config.ts";
import { DAY_MS, SECOND_MS } from "../lib/time/clock.ts";
import { UsageError } from "../lib/usage-error.ts";
import { backupCommands } from "./backup/commands.ts";
import { ALL, configOf, DATABASE, FORCE, flagArgs, say, settingOptions } from "./command-settings.ts";
import type { Finding, State } from "./doctor.ts";

const group = GROUPS.operator;
const DAY_SECONDS = DAY_MS / SECOND_MS;
const UNIT_FOLDER: OptionSpec = {
  flags: "--folder <path>",
  about: "folder of the unit file (default /etc/systemd/system)",
};
const WRITE_ONLY: OptionSpec = { flags: "--write-only", about: "leave systemd alone: only write or remove the file" };

export const operatorCommands: readonly CommandSpec[] = [
  {
    name: "up",
    group,
    summary: "start the server (the same as npm start)",
    options: [...ALL, { flags: "--check-config", about: "print what is in force and exit" }],
    examples: ["berth up", "berth up --port 9000 --data /srv/berth"],
    run: async ({ options }) => {
      const { up } = await import("./up.ts");
      const flags = flagArgs(options);
      await up(options.checkConfig === true ? [...flags, "--check-config"] : flags);
      return undefined;
    },
  },
  {
    name: "down",
    group,
    summary: "stop the servers of a data folder, and their workloads",
    details:
      "Requests in flight are finished, as with Ctrl-C. Sandboxes and other workloads end with them; sandboxes keep their\nfiles, and the next start goes on with them. With --keep workloads are left as the setting on_stop says. With --purge\nfiles outside of volumes and drives are removed too: what will be gone is named before and asked about. Where nobody\ncan be asked, nothing is stopped then, and the command ends with 2, unless --yes is given.",
    options: [
      { flags: "--keep", about: "leave workloads as they are" },
      { flags: "--purge", about: "remove the files of sandboxes too" },
      { flags: "--yes", about: "do not ask before files are removed" },
      ...settingOptions(["data"]),
    ],
    examples: ["berth down", "berth down --keep", "berth down --purge --yes"],
    run: async (call) => {
      const { stopServers } = await import("./down.ts");
      const [keepWorkloads, purge] = [call.options.keep === true, call.options.purge === true];
      if (keepWorkloads && purge) throw new UsageError("--keep and --purge exclude each other.");
      const config = configOf(call);
      if (purge) await confirmLosses(config, call);
      else if (!keepWorkloads) await tellEndings(config, call);
      return say(call, await stopServers({ config, keepWorkloads, purge }));
    },
  },
  {
    name: "upgrade",
    group,
    summary: "install another version beside the running one and switch to it",
    details:
      "The new version is installed below this one (versions/), loaded, and tried on the database while the old one serves.\nThen the old one finishes its requests and the new one takes over its port: connections wait meanwhile, none is\nrefused, and workloads go on. When the new version is not ready in time, the old one goes on, with the database as\nit was, and the command ends with 5. Later starts run the new version; `npm ci` in this folder undoes that.\nWithout a running server the new version is installed and tried.",
    options: [
      {
        flags: "--to <version>",
        about:
          "branch, tag or commit of this checkout's remote, or a path (./folder, archive.tgz); default: the branch that the checkout follows",
      },
      { flags: "--check", about: "install and try the new version, then go on with the old one" },
      { flags: "--drain <seconds>", about: "for requests in flight to finish (default 10)" },
      { flags: "--limit <seconds>", about: "for the new version to be loaded, and then to be ready (default 120)" },
      ...DATABASE,
    ],
    examples: ["berth upgrade", "berth upgrade --to v0.2.0", "berth upgrade --to ./berth-0.2.0.tgz --check"],
    run: async (call) => {
      const { upgrade } = await import("./upgrade/command.ts");
      const { to, check, drain, limit } = call.options;
      const lines = await upgrade({
        config: configOf(call),
        args: flagArgs(call.options),
        to: text(to),
        checkOnly: check === true,
        drainMs: secondsOf("--drain", drain, 10),
        limitMs: secondsOf("--limit", limit, 120),
        note: call.context.note,
      });
      return say(call, lines);
    },
  },
  {
    name: "restart-edges",
    group,
    summary: "replace the edge processes of the running server, and drop no connection",
    details:
      "One after another a new process takes the place of an old one. An old process serves the connections that it has\nuntil they end: each HTTP/1.1 connection with its next answer, HTTP/2 ones with their last one, WebSockets when either\nside ends them, at the latest after an hour.",
    options: settingOptions(["data"]),
    examples: ["berth restart-edges"],
    run: async (call) => {
      const { restartEdges } = await import("./restart-edges.ts");
      return say(call, await restartEdges(configOf(call)));
    },
  },
  {
    name: "doctor",
    group,
    summary: "check this machine and say what to do",
    details: "Nothing is changed. Ends with 1 when there is a problem.",
    options: settingOptions(["data", "database_url", "host", "port"]),
    examples: ["berth doctor"],
    run: doctor,
  },
  {
    name: "storage",
    group,
    summary: "show what takes space on this machine, and files that no record names",
    details: "By kind and workspace, largest first. Nothing is removed. The server may be running.",
    options: [{ flags: "--json", about: "as JSON" }, ...settingOptions(["data", "database_url", "driver"])],
    examples: ["berth storage", "BERTH_DATA=/srv/berth berth storage --json"],
    run: async (call) => {
      const { measureStorage, storageLines } = await import("./storage.ts");
      const config = configOf(call);
      const report = await measureStorage(config);
      return say(call, call.options.json === true ? [JSON.stringify(report, null, 2)] : storageLines(report, config));
    },
  },
  {
    name: "service",
    group,
    summary: "run the server as a service of this machine (systemd)",
    commands: [
      {
        name: "install",
        group: GROUPS.verbs,
        summary: "write the unit file, and start the server now and with the machine",
        details:
          "The service runs this installation on the data folder. Its settings are berth.toml there, and variables in\n/etc/berth/berth.env. A stop of the service leaves workloads running.",
        options: [
          WRITE_ONLY,
          UNIT_FOLDER,
          FORCE("replace a file that this command did not write"),
          ...settingOptions(["data"]),
        ],
        examples: [
          "berth service install --data /var/lib/berth",
          "berth service install --write-only --folder ./units",
        ],
        run: async (call) => {
          const { installService } = await import("./service.ts");
          return say(call, await installService({ data: configOf(call).data, ...serviceOptions(call) }));
        },
      },
      {
        name: "uninstall",
        group: GROUPS.verbs,
        summary: "stop the service and remove the unit file",
        options: [WRITE_ONLY, UNIT_FOLDER, FORCE("remove a file that this command did not write")],
        examples: ["berth service uninstall"],
        run: async (call) => {
          const { uninstallService } = await import("./service.ts");
          return say(call, await uninstallService(serviceOptions(call)));
        },
      },
    ],
  },
  {
    name: "reset-password",
    group,
    summary: "set somebody's password straight in the database, when nobody can sign in any more",
    details: "With SQLite the server must be stopped. The new password is asked for, or read from standard input.",
    args: [{ name: "email", about: "whose" }],
    options: DATABASE,
    examples: ["berth reset-password admin@berth.local"],
    run: async (call) => {
      const { resetPassword } = await import("./reset-password.ts");
      const password = ((await call.context.askSecret("New password: ")) ?? "").replace(/\r?\n[\s\S]*$/, "");
      return say(call, await resetPassword({ config: configOf(call), email: text(call.args[0]) ?? "", password }));
    },
  },
  {
    name: "rotate-key",
    group,
    summary: "replace the key that seals secrets, and seal everything anew",
    details:
      "The server may be running, and goes on serving. An interrupted run goes on where it was: run it again.\nAddresses, tokens and API keys stay. Backups of before need the old key, which stays as secret.key.FINGERPRINT.old.\nWith BERTH_SECRET_KEY, set BERTH_SECRET_KEY_NEXT on every server first.",
    options: DATABASE,
    examples: ["berth rotate-key", "BERTH_DATA=/srv/berth berth rotate-key"],
    run: async (call) => {
      const { rotateSecretKey } = await import("./rotate-key.ts");
      return say(call, await rotateSecretKey({ config: configOf(call), note: (line) => call.context.note(line) }));
    },
  },
  ...backupCommands,
  {
    name: "version",
    group: GROUPS.more,
    summary: "print the version, where it is installed, and what the server on this machine runs",
    options: settingOptions(["data"]),
    examples: ["berth version"],
    run: async (call) => {
      const { versionLines } = await import("./upgrade/shown.ts");
      return say(call, versionLines(configOf(call).data));
    },
  },
];

const serviceOptions = ({ options }: Invocation) => ({
  folder: text(options.folder) ?? "/etc/systemd/system",
  writeOnly: options.writeOnly === true,
  force: options.force === true,
});

async function tellEndings(config: Config, { context }: Invocation): Promise<void> {
  const { endingsOf } = await import("./endings.ts");
  for (const line of await endingsOf(config)) context.note(line);
}

/** What will be gone is always named, and goes only when somebody says so: at a terminal, or with --yes. */
async function confirmLosses(config: Config, { options, context }: Invocation): Promise<void> {
  const { lossesOf } = await import("./endings.ts");
  const losses = await lossesOf(config);
  for (const line of losses) context.note(line);
  if (losses.length === 0 || options.yes === true) return;
  const answer = context.canAsk ? await context.ask("Stop, and lose them? [y/N] ") : null;
  if (!/^\s*y(es)?\s*$/i.test(answer ?? ""))
    throw new UsageError(
      "nothing was stopped.",
      "`berth down` ends workloads and leaves files of sandboxes; `berth down --purge --yes` removes them without asking",
    );
}

function secondsOf(flag: string, given: OptionValue, otherwise: number): number {
  const seconds = given === undefined ? otherwise : Number(given);
  if (!(seconds >= 0 && seconds <= DAY_SECONDS)) throw new UsageError(`${flag} takes a number of seconds.`);
  return seconds * SECOND_MS;
}

const MARKS: Record<State, string> = {
  ok: styleText("green", "ok      "),
  warning: styleText("yellow", "warning "),
  problem: styleText("red", "problem "),
};

async function doctor(call: Invocation): Promise<number | undefined> {
  const { examine } = await import("./doctor.ts");
  const { context } = call;
  const show = ({ check, state, says, next }: Finding): void => {
    context.print(`${MARKS[state]} ${check.padEnd(12)} ${says}`);
    if (next) context.print(`${" ".repeat(22)}next: ${next}`);
  };
  const findings = await examine(configOf(call), show);
  return findings.some(({ state }) => state === "problem") ? EXIT.failure : undefined;
}
