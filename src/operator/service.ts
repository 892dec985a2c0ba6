/** `berth service`: the server as a service of this machine's systemd. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeUsableFolder } from "../lib/data-folder.ts";
import { ROOT } from "../lib/root.ts";
import { UsageError } from "../lib/usage-error.ts";

const UNIT = "berth.service";
/** First line of a file that this command wrote; a file without it is somebody's own. */
const MARK = "# Written by `berth service install`; `berth service uninstall` removes it.";

export interface ServiceOptions {
  /** Data folder of the server. */
  data: string;
  /** Folder of the unit file. */
  folder: string;
  /** Leave systemd alone: only write or remove the file. */
  writeOnly: boolean;
  /** Replace a file that this command did not write. */
  force?: boolean;
  /** Runs `systemctl` with these arguments. */
  systemctl?: (...args: string[]) => Promise<unknown>;
}

/** Returns the lines to show to the operator. */
export async function installService(options: ServiceOptions): Promise<string[]> {
  const { data, folder, writeOnly, force = false, systemctl = run } = options;
  const file = join(folder, UNIT);
  if (!writeOnly) checkSystemd(options);
  if (existsSync(file) && !isOurs(file) && !force)
    throw new UsageError(`${file} was not written by this command.`, "--force replaces it");
  makeUsableFolder("folder of units", folder, "choose another folder with --folder");
  writeFileSync(file, unitText(data), { mode: 0o644 });
  if (writeOnly) return [`wrote ${file}`, "start it: systemctl daemon-reload && systemctl enable --now berth"];
  await systemctl("daemon-reload");
  await systemctl("enable", UNIT);
  await systemctl("restart", UNIT);
  return [`wrote ${file}`, `started the server of ${data}; its log: journalctl -u berth -f`];
}

export async function uninstallService(options: Omit<ServiceOptions, "data">): Promise<string[]> {
  const { folder, writeOnly, force = false, systemctl = run } = options;
  const file = join(folder, UNIT);
  if (!existsSync(file)) return [`there is no ${file}`];
  if (!isOurs(file) && !force) throw new UsageError(`${file} was not written by this command.`, "--force removes it");
  if (!writeOnly) {
    checkSystemd(options);
    await systemctl("disable", "--now", UNIT);
  }
  rmSync(file);
  if (!writeOnly) await systemctl("daemon-reload");
  const kept = "Data stays where it is. Workloads that were running go on: `berth down` ends them";
  return [`removed ${file}`, ...(writeOnly ? [] : [kept])];
}

/** The unit of the repository with the paths of this installation. */
export function unitText(data: string): string {
  const values: Record<string, string> = {
    WorkingDirectory: escaped(ROOT),
    ExecStart: [process.execPath, join(ROOT, "bin/berth.js"), "up"].map(quoted).join(" "),
    Environment: quoted(`BERTH_DATA=${data}`),
  };
  const text = readFileSync(join(ROOT, "deploy", UNIT), "utf8");
  const lines = text.split("\n").slice(1);
  const filled = lines.map((line) => {
    const key = line.split("=")[0] ?? "";
    return Object.hasOwn(values, key) ? `${key}=${values[key]}` : line;
  });
  return [MARK, ...filled].join("\n");
}

const isOurs = (file: string): boolean => readFileSync(file, "utf8").startsWith(MARK);

/** systemd reads % as the beginning of a specifier. */
const escaped = (value: string): string => value.replaceAll("%", "%%");

const quoted = (value: string): string =>
  /^[\w@%+=:,./-]+$/.test(value)
    ? escaped(value)
    : `"${escaped(value).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("$", "$$$$")}"`;

function checkSystemd({ systemctl }: Pick<ServiceOptions, "systemctl">): void {
  if (systemctl) return;
  const advice = "--write-only writes the file and leaves systemd alone";
  if (!existsSync("/run/systemd/system")) throw new UsageError("systemd does not run on this machine.", advice);
  if (process.getuid?.() !== 0) throw new UsageError("a service of the machine is installed by root.", advice);
}

async function run(...args: string[]): Promise<void> {
  try {
    await promisify(execFile)("systemctl", args);
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim() || (error as Error).message;
    throw new UsageError(`systemctl ${args.join(" ")}: ${said}`, "look at `journalctl -u berth`");
  }
}
