/**
 * Generated hostile archives, unpacked in this process with all of its rights: no cage hides a mistake of the unpacker.
 * A canary lies beside the target. The short run draws the same archives every time, the long one new ones.
 */

import assert from "node:assert/strict";
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { removeTree } from "../../src/lib/remove-tree.ts";
import { Spawner } from "../../src/node/drivers/local/calls/spawner.ts";
import type { Arch } from "../../src/node/drivers/local/calls/stepper.ts";
import { writeMarks } from "../../src/node/drivers/local/unpack/marks.ts";
import { runJob, type UnpackAnswer } from "../../src/unpack/job.ts";
import { Canary } from "../canary.ts";
import { type Entry, tar } from "../image-archive.ts";
import { LONG } from "../long.ts";
import fc from "../properties.ts";
import { type Member, zip } from "../zip-archive.ts";

const RUNS = LONG ? 20_000 : 250;
const BUDGET = { bytes: 1e6, entries: 1000, readBytes: 1e7 };
const TIME_MAX_MS = 600_000;
const PRIVILEGED = process.getuid?.() === 0;

/** In memory where the machine offers that: thousands of small trees are made and removed. */
const scene = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "archive-fuzz-"));
const canary = new Canary(scene);
const tools = mkdtempSync(join(tmpdir(), "archive-fuzz-"));
const spawner = new Spawner(tools, process.arch as Arch);

/** Few names, so that entries meet; among them all that mean something to an unpacker. */
const name = fc.constantFrom(
  "a",
  "b",
  "A",
  "precious",
  "folder",
  "alias",
  ".",
  "..",
  "",
  ".wh.a",
  ".wh.b",
  ".wh.precious",
  ".wh.folder",
  ".wh..wh..opq",
  ".wh..wh.plnk",
  ".wh..",
  ".wh...",
  ".wh.",
  ".wh.A",
  "con",
  "nul",
  "n".repeat(90),
  "n".repeat(256),
  "ü",
  "\u202e",
  "*",
  "\n",
  " ",
);
const within = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => names.join("/"));
const outside = fc.constantFrom(
  canary.dir,
  `${canary.dir}/precious`,
  `${canary.dir}/folder`,
  "../../",
  "../../../../../../..",
  "/",
  "/proc/self/root",
  `/proc/self/root${canary.dir}`,
  "/proc/self/fd/3",
  "/proc/self/cwd",
  `../${canary.dir.replace(/^.*\//, "")}`,
  `../../${canary.dir.replace(/^.*\//, "")}/folder`,
  ".",
  "..",
);
const anywhere = fc.oneof({ weight: 3, arbitrary: within }, { weight: 2, arbitrary: outside });
const path = fc.oneof(
  { weight: 8, arbitrary: within },
  { weight: 1, arbitrary: within.map((each) => `/${each}`) },
  { weight: 1, arbitrary: fc.tuple(outside, name).map(([to, last]) => `${to}/${last}`) },
);
const entry: fc.Arbitrary<Entry> = fc.record({
  path,
  type: fc.constantFrom("0", "0", "5", "5", "2", "2", "2", "1", "1", "\0", "7", "3", "4", "6", "S", "V", "Z"),
  link: anywhere,
  content: fc.constantFrom("", "x", "y".repeat(600)),
  mode: fc.constantFrom(0o644, 0o755, 0, 0o4755, 0o7777, 0o1777),
});
/** What image tools write for a name that does not fit: the next entry's path stands in a header of its own. */
const longName = fc
  .tuple(fc.constantFrom("path", "linkpath"), anywhere, entry)
  .map(([key, value, next]): Entry[] => [{ path: "pax", type: "x", content: pax(key, value) }, next]);
const entries = fc
  .array(fc.oneof({ weight: 9, arbitrary: entry.map((one) => [one]) }, { weight: 1, arbitrary: longName }), {
    minLength: 1,
    maxLength: 14,
  })
  .map((groups) => groups.flat());

/** What is refused at once is left out of most archives, or hardly one would be read to its end. */
const REFUSED_NAME = /(^|\/)(\.\.|\.wh\.{1,3}|n{91,})(\/|$)/;
const harmless = ({ path, type = "0", content = "" }: Entry): boolean =>
  !/[134SZ]/.test(type) && !REFUSED_NAME.test(path) && !(type === "x" && REFUSED_NAME.test(String(content).trim()));
const layer = fc.oneof(
  entries,
  entries.map((all) => all.filter(harmless)),
);
const damage = fc.oneof(
  { weight: 9, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.record({ at: fc.nat(4000), byte: fc.nat(255) }) },
);
const compressed = fc.boolean();

describe("generated archives", { skip: process.platform !== "linux" && "needs Linux" }, () => {
  before(() => spawner.open());
  after(async () => {
    await spawner.stop();
    for (const dir of [scene, tools]) await removeTree(dir);
  });

  test("images leave what lies beside the target as it is", async () => {
    const taken = { yes: 0, no: 0 };
    const images = fc.tuple(fc.array(layer, { minLength: 1, maxLength: 3 }), damage, compressed);
    await fc.assert(
      fc.asyncProperty(images, async ([layers, broken, gzip]) => {
        const parts = layers.map((each) => damaged(tar(each), broken)).map((each) => (gzip ? gzipSync(each) : each));
        let at = 0;
        const sources = parts.map((part, index) => {
          at += part.length;
          return { name: `layer-${index}`, start: at - part.length, size: part.length };
        });
        const work = {
          kind: "layers" as const,
          layers: sources,
          lowers: [],
          budget: { ...BUDGET },
          owners: PRIVILEGED,
        };
        const answer = (await attack(Buffer.concat(parts), work)) as UnpackAnswer<"layers">;
        taken["refusal" in answer ? "no" : "yes"] += 1;
      }),
      { numRuns: RUNS },
    );
    assert.ok(taken.yes > RUNS / 10 && taken.no > RUNS / 10, `too one-sided to tell: ${JSON.stringify(taken)}`);
  });

  test("archives of files leave what lies beside the target as it is", async () => {
    const member: fc.Arbitrary<Member> = fc.record({
      path,
      content: fc.constantFrom("", "x", canary.dir),
      mode: fc.constantFrom(0o100644, 0o100755, 0o120777, 0o040755, 0o060644, 0o010644),
    });
    const archive = fc.oneof(fc.array(member, { minLength: 1, maxLength: 8 }).map(zip), layer.map(tar));
    const work = { kind: "files", limits: { entriesMax: 100, bytesMax: 1e6 } } as const;
    await fc.assert(
      fc.asyncProperty(archive, damage, async (bytes, broken) => {
        await attack(damaged(bytes, broken), work);
      }),
      { numRuns: RUNS },
    );
  });
});

/** Unpacks, makes the marks of layers, and looks at everything that could have changed. */
async function attack(archive: Buffer, work: Parameters<typeof runJob>[0]["work"]): Promise<UnpackAnswer> {
  const target = join(scene, "target");
  const file = join(scene, "archive");
  mkdirSync(target);
  writeFileSync(file, archive);
  const fd = openSync(file, "r");
  const before = openDescriptors();
  try {
    const answer = await runJob({ target, timeMaxMs: TIME_MAX_MS, work }, fd);
    assert.equal(openDescriptors(), before, "every folder is closed again");
    for (const [index, made] of ("layers" in answer ? answer.layers : []).entries())
      await writeMarks(spawner, join(target, `layer-${index}`), made, { kind: "contained" });
    if ("sizeBytes" in answer) {
      const made = readdirSync(target, { recursive: true, withFileTypes: true });
      assert.ok(made.every((each) => each.isFile() || each.isDirectory()));
    }
    return answer;
  } finally {
    closeSync(fd);
    canary.assertUntouched();
    assert.deepEqual(
      readdirSync(scene).filter((each) => each !== "target" && each !== "archive"),
      [canary.dir.replace(/^.*\//, "")],
    );
    assert.ok(lstatSync(target).isDirectory());
    await removeTree(target); // folders in it may be closed to their owner
  }
}

const openDescriptors = (): number => readdirSync("/proc/self/fd").length;

function damaged(bytes: Buffer, broken: { at: number; byte: number } | null): Buffer {
  if (broken && bytes.length > 0) bytes[broken.at % bytes.length] = broken.byte;
  return bytes;
}

function pax(key: string, value: string): string {
  const record = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(record);
  length += String(length).length;
  return `${String(length).length + Buffer.byteLength(record)}${record}`;
}
