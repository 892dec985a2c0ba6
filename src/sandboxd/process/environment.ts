/**
 * Variables, work dir and user of the processes started here. Four layers, later ones win: the environment of init, the
 * configuration (or the claim that replaces its part), the metadata file, the request.
 */
import { readFileSync, statSync } from "node:fs";
import type { RemoteDoor, SandboxClaim, SandboxdConfig, SandboxUser } from "../../contract/sandbox-wire.ts";
import { userByName, userOf } from "../files/accounts.ts";
import type { PathBase } from "../files/byte-path.ts";
import { ApiError, errnoOf } from "../http/api-error.ts";
import { readClaim } from "./claim.ts";

/** Meant for the daemon's own runtime; a workload that runs Bun must not inherit them. */
const OWN_VARIABLE = /^(BUN_|SANDBOXD_|NODE_CHANNEL_FD|MIMALLOC_)/;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const DEFAULT_METADATA_FILE = "/bl/metadata";
const UNCLAIMED: SandboxClaim = {};
const ROOT_HOME = "/root";

export class Environment {
  #config: SandboxdConfig;
  readonly #own: Record<string, string>;
  #claimed: SandboxClaim | null = null;
  #metadata: Record<string, string> = {};
  #merged: Record<string, string> | null = null;

  constructor(config: SandboxdConfig, processEnv: NodeJS.ProcessEnv) {
    this.#config = config;
    this.#own = { PATH: DEFAULT_PATH };
    for (const [name, value] of Object.entries(processEnv)) {
      if (value !== undefined && !OWN_VARIABLE.test(name)) this.#own[name] = value;
    }
  }

  /** For a copy that goes on from the memory of another workload; see `system/copied.ts`. */
  replace(config: SandboxdConfig): void {
    this.#config = config;
    this.#claimed = null;
    this.#merged = null;
  }

  /** False while a prepared sandbox waits for its owner. */
  get isOwned(): boolean {
    return this.#config.claimFile === undefined || this.#claim !== UNCLAIMED;
  }

  /** Most processes that commands may have; see the configuration. */
  get processesMax(): number | undefined {
    return this.#config.processesMax;
  }

  /** When a prepared sandbox was claimed, in ms; 0 for a sandbox made for its owner. */
  get ownedSinceMs(): number {
    const { claimFile } = this.#config;
    return claimFile !== undefined && this.isOwned ? statSync(claimFile).mtimeMs : 0;
  }

  /**
   * The claim, once its file is there. Checked at each use, so that no signal is needed and a restarted daemon finds it
   * too.
   */
  get #claim(): SandboxClaim {
    if (this.#claimed) return this.#claimed;
    const { claimFile } = this.#config;
    this.#claimed = claimFile === undefined ? null : readClaim(claimFile);
    if (this.#claimed) this.#merged = null;
    return this.#claimed ?? UNCLAIMED;
  }

  /** The platform's port for a door that waits for the owner. */
  claimedDoor(index: number): RemoteDoor | undefined {
    return this.#claim.doors?.[index];
  }

  variables(extra: Record<string, string> = {}): Record<string, string> {
    return { ...this.#current(), ...extra };
  }

  variable(name: string): string | undefined {
    return this.#current()[name];
  }

  /** The merged layers, cached until one of them changes. */
  #current(): Record<string, string> {
    const { env = this.#config.env } = this.#claim;
    this.#merged ??= this.#merge(env);
    return this.#merged;
  }

  #merge(env?: Record<string, string>): Record<string, string> {
    const { user } = this.#chosen;
    const name = user ? userOf(user.uid)?.name : undefined;
    const own = { ...(user ? { HOME: this.home } : {}), ...(name ? { USER: name, LOGNAME: name } : {}) };
    const merged = { ...this.#own, ...own, ...env, ...this.#metadata };
    // Images set HOME to root's home folder, which is wrong for any other user.
    if (user && user.uid !== 0 && merged.HOME === ROOT_HOME) merged.HOME = this.home;
    return merged;
  }

  get workDir(): string {
    return this.#claim.workDir ?? this.#config.workDir ?? this.variable("WORKDIR") ?? process.cwd();
  }

  get home(): string {
    const { user } = this.#chosen;
    if (user?.home) return user.home;
    return (user ? userOf(user.uid)?.home : this.#own.HOME) ?? ROOT_HOME;
  }

  get pathBase(): PathBase {
    return { workDir: this.workDir, home: this.home };
  }

  /** The user of commands. Undefined: the daemon's own. Throws when BL_SANDBOX_USER names an unknown user. */
  get user(): SandboxUser | undefined {
    const { user, unknown } = this.#chosen;
    if (unknown !== undefined)
      throw new ApiError(422, `There is no user "${unknown}" in this sandbox, which BL_SANDBOX_USER asks for.`);
    return user;
  }

  /** The user whose rights the file API has. Undefined: the daemon's own. An image's USER only applies to commands. */
  get filesUser(): SandboxUser | undefined {
    const { user } = this;
    return this.#chosen.byOwner && user?.uid !== process.getuid?.() ? user : undefined;
  }

  /** The user that the owner's BL_SANDBOX_USER names, otherwise that of the image. */
  get #chosen(): { user?: SandboxUser; unknown?: string; byOwner?: true } {
    const env = { ...this.#own, ...(this.#claim.env ?? this.#config.env) };
    const name = env.BL_SANDBOX_USER;
    if (!name || !/^(1|true|yes|on)$/i.test(env.BL_SANDBOX_USER_ENABLED ?? "")) {
      const user = this.#claim.user ?? this.#config.user;
      return user ? { user } : {};
    }
    const account = userByName(name) ?? (/^\d+$/.test(name) ? userOf(Number(name)) : undefined);
    if (!account) return { unknown: name, byOwner: true };
    return { user: { uid: account.uid, gid: account.gid, home: account.home }, byOwner: true };
  }

  get shell(): string[] {
    const { SHELL, SHELL_ARGS } = this.#current();
    return [SHELL || "sh", ...(SHELL_ARGS || "-c").split(" ").filter(Boolean)];
  }

  /** Applies the metadata file to future processes and returns how many variables changed. */
  reload(): { generation: number; applied: number; removed: number } {
    const file = this.#config.metadataFile ?? DEFAULT_METADATA_FILE;
    const metadata = readIfPresent<{ generation?: unknown; environment?: unknown }>(file);
    if (!metadata) throw new ApiError(404, `There is no metadata file at ${file}.`);
    const next = variablesOf(metadata.environment);
    if (!next) throw new ApiError(500, `${file} has no "environment" made of names and texts.`);
    const removed = Object.keys(this.#metadata).filter((name) => !(name in next)).length;
    const applied = Object.entries(next).filter(([name, value]) => this.#metadata[name] !== value).length;
    this.#metadata = next;
    this.#merged = null;
    return { generation: Number(metadata.generation ?? 0) || 0, applied, removed };
  }
}

/** Reads a map, or the list of pairs that the management API uses. */
function variablesOf(environment: unknown): Record<string, string> | null {
  if (typeof environment !== "object" || environment === null) return null;
  const pairs: [unknown, unknown][] = Array.isArray(environment)
    ? environment.map((entry: { name?: unknown; value?: unknown } | null) => [entry?.name, entry?.value])
    : Object.entries(environment);
  const isPair = (pair: [unknown, unknown]): pair is [string, string] => pair.every((part) => typeof part === "string");
  return pairs.every(isPair) ? Object.fromEntries(pairs as [string, string][]) : null;
}

function readIfPresent<T>(file: string): T | null {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
    return typeof parsed === "object" && parsed !== null ? (parsed as T) : null;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw new ApiError(500, `${file} could not be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
