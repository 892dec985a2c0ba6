/** A Docker driver with a data folder of its own, on an engine of the test's own. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBun } from "../../src/lib/bun-program.ts";
import { CAPABILITY_NAMES } from "../../src/node/capabilities/capabilities.ts";
import type { Candidate } from "../../src/node/conformance/conformance.ts";
import type { Harness } from "../../src/node/conformance/harness.ts";
import {
  type DockerDriver,
  type DockerDriverOptions,
  openDockerDriver,
} from "../../src/node/drivers/docker/docker-driver.ts";
import type { BaseImage } from "../../src/node/drivers/local/images/base-image.ts";
import { closeAtEnd } from "../closing.ts";
import { shellHarness } from "../local/shell-harness.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { DOCKER_MISSING, findDocker } from "./binaries.ts";
import { startEngine, type TestEngine } from "./engine.ts";
import { smallBase } from "./small-base.ts";

export const dockerRoot = findDocker();

/** Why the suites cannot run; null when they can. */
export const dockerMissing: string | null =
  dockerRoot === null ? DOCKER_MISSING : findBun() === null ? "needs Bun: npm install --include=optional" : null;

/** One engine and one base image for all tests of a file. */
export interface Bench {
  engine: TestEngine;
  base: BaseImage;
  stop(): Promise<void>;
}

export async function openBench(nodeBinary?: string): Promise<Bench> {
  const dir = mkdtempSync(join(tmpdir(), "berth-base-"));
  const engine = await startEngine(dockerRoot ?? "/");
  return {
    engine,
    base: smallBase({ dir, guests: [await sandboxdBinary()], ...(nodeBinary ? { nodeBinary } : {}) }),
    stop: async () => {
      await engine.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export class DockerMachine {
  readonly dataDir = mkdtempSync(join(tmpdir(), "berth-docker-"));
  readonly #bench: Bench;
  readonly #drivers = new Set<DockerDriver>();
  readonly #closed = closeAtEnd(() => this.dispose());

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  async open(options: Partial<DockerDriverOptions> = {}): Promise<DockerDriver> {
    const { engine, base } = this.#bench;
    const sandboxd = await sandboxdBinary();
    const given = { dataDir: this.dataDir, brand: "berth", sandboxd, node: "here", host: engine.host, base };
    const driver = await openDockerDriver({ ...given, ...options });
    this.#drivers.add(driver);
    return driver;
  }

  async dispose(): Promise<void> {
    this.#closed();
    for (const driver of this.#drivers) await driver.stop("kill").catch(() => {});
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 10 });
  }
}

export const dockerCandidate = (bench: () => Bench): Candidate => ({
  capabilities: CAPABILITY_NAMES.filter(
    (name) => !["hotMounts", "building", "hibernation", "memorySnapshots", "volumeCopies"].includes(name),
  ),
  open: () => harness(bench(), {}),
});

function harness(bench: Bench, options: Partial<DockerDriverOptions>): Promise<Harness> {
  const machine = new DockerMachine(bench);
  return shellHarness({
    open: () => machine.open(options),
    neighbour: () => harness(bench, { ...options, node: "there" }),
    ended: async () => {
      assert.deepEqual(readdirSync(join(machine.dataDir, "workloads")), []);
      await machine.dispose();
    },
  });
}
