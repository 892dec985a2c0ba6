/**
 * Control groups of the servers that a test file killed, which could not remove them. A server names its group after
 * the hash of its data folder, so the folders are noted while they are there.
 */
import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** Where below a temporary folder a server may keep its workloads. */
const PLACES = ["", "runtime", "data/runtime", ".berth/runtime"];

export class ControlGroups {
  readonly #folder: string;
  readonly #hashes = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Notes the data folders that are there now. */
  look(): void {
    for (const name of existsSync(this.#folder) ? readdirSync(this.#folder) : []) {
      for (const place of PLACES) {
        const dir = join(this.#folder, name, place);
        if (!existsSync(join(dir, "workloads"))) continue;
        this.#hashes.add(createHash("sha256").update(dir).digest("hex").slice(0, 8));
      }
    }
  }

  /** Removes those that are empty; deepest first. */
  remove(): void {
    if (this.#hashes.size === 0) return;
    const groups = globSync("/sys/fs/cgroup/**/*-????????").filter((path) => this.#hashes.has(path.slice(-8)));
    for (const group of groups) for (const path of [...globSync(join(group, "*/")), group]) removeEmpty(path);
  }
}

function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody is still in it: its process is told as left behind.
  }
}
