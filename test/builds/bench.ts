/** A builder on a machine of its own, whose builds take their context from memory. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { LogTag } from "../../src/contract/log-line.ts";
import { Builder } from "../../src/node/builds/builder.ts";
import { createCacheBook } from "../../src/node/builds/cache-book.ts";
import type { BuildRequest, BuiltImage } from "../../src/node/builds/image-build.ts";
import type { LocalDriver, LocalDriverOptions } from "../../src/node/drivers/local/local-driver.ts";
import { LocalMachine } from "../local/machine.ts";

export const BASE = "berth/base-image:latest";

export interface BuildBench extends AsyncDisposable {
  driver: LocalDriver;
  machine: LocalMachine;
  builder: Builder;
  /** What the disk of the machine lacks. */
  shortage: string | null;
  /** What the caches of a workspace may hold; undefined: the builder's own limit. */
  cacheBytesMax: number | undefined;
  /** Lines of the builder itself. */
  said: string[];
  /** `files`: the context, by path. */
  build(files: Record<string, string | Buffer>, more?: Partial<BuildRequest>): Promise<BuiltImage>;
  /** What a command in a workload of the image writes. */
  run(image: string, line: string | string[]): Promise<string>;
}

export async function openBench(
  options: Partial<LocalDriverOptions> = {},
  machine = new LocalMachine(),
): Promise<BuildBench> {
  const driver = await machine.open(options);
  const temp = mkdtempSync(join(tmpdir(), "berth-builds-"));
  const said: string[] = [];
  const notes = new Map<string, unknown>();
  const makeFolder = async (): Promise<string> => mkdtempSync(join(temp, "folder-"));
  const builder = new Builder({
    driver,
    logs: { append: (_tag: LogTag, lines) => said.push(...lines.map(({ message }) => message)) },
    makeFolder,
    caches: createCacheBook({
      readNote: async (key) => notes.get(key) ?? null,
      writeNote: async (key, note) => void notes.set(key, note),
    }),
    shortage: () => bench.shortage,
    cacheBytesMax: () => bench.cacheBytesMax,
  });
  let count = 0;
  const log: LogTag = { workspace: "ws", plural: "images", name: "test", uid: "test", source: "build" };
  const bench: BuildBench = {
    shortage: null,
    cacheBytesMax: undefined,
    driver,
    machine,
    builder,
    said,
    async build(files, more = {}) {
      const folder = await makeFolder();
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(join(folder, dirname(path)), { recursive: true });
        writeFileSync(join(folder, path), content);
      }
      count += 1;
      const request: BuildRequest = {
        ...{ id: `build-${count}`, owner: "ws/1", folder, dockerfile: "Dockerfile", args: {}, noCache: false },
        ...{ secrets: {}, env: {}, mounts: [], base: async (name) => (name === "base" ? BASE : name), log },
        ...more,
      };
      return builder.build(request, new AbortController().signal, async (built) => built);
    },
    async run(image, line) {
      count += 1;
      const uid = `run-${count}`;
      const argv = typeof line === "string" ? ["/bin/sh", "-c", line] : line;
      const limits = { memoryMb: 256, cpus: 1 };
      await driver.create({ uid, name: "run", image, env: {}, limits, network: "closed", exec: { argv } });
      await driver.waitExit(uid);
      const { bytes } = await driver.readOutput(uid, "stdout", 0, 100_000);
      const errors = await driver.readOutput(uid, "stderr", 0, 10_000);
      await driver.destroy(uid);
      return bytes.toString() + errors.bytes.toString();
    },
    async [Symbol.asyncDispose]() {
      await builder.stop();
      await driver.stop("kill");
      machine.dispose();
      rmSync(temp, { recursive: true, force: true });
    },
  };
  return bench;
}
