/**
 * Image archives that attack the machine which unpacks them, on its real driver. A canary, a tree that the archives aim
 * at, must stay byte-identical whatever they hold.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import type { Grade } from "../../src/node/workload.ts";
import { Canary } from "../canary.ts";
import { dockerSave, type Entry, tar } from "../image-archive.ts";
import { LocalMachine, localDriverMissing, localGrades } from "../local/machine.ts";

const folder = (path: string): Entry => ({ path: `${path}/`, type: "5", mode: 0o755 });
const link = (path: string, target: string): Entry => ({ path, type: "2", link: target });
const hardLink = (path: string, target: string): Entry => ({ path, type: "1", link: target });
const up = "../".repeat(30);

/** What the image's sender is told; null: the image is taken, because inside of it all of this is allowed. */
interface Attack {
  layers: (victim: string) => Entry[][];
  refusal: RegExp | null;
}

const attacks: Record<string, Attack> = {
  "a whiteout whose folder becomes a link to the host": {
    layers: (victim) => [[folder("a/b"), { path: "a/b/.wh.precious" }, link("a/b", victim)]],
    refusal: null,
  },
  "an opaque mark whose folder becomes a link to the host": {
    layers: (victim) => [[folder("a/b"), { path: "a/b/.wh..wh..opq" }, link("a/b", victim)]],
    refusal: null,
  },
  "whiteouts through links, in order and in the layer above": {
    layers: (victim) => [
      [link("a", victim), { path: "a/.wh.precious" }, { path: "a/folder/.wh..wh..opq" }],
      [{ path: "a/.wh.alias" }, folder("a"), link("b", `${up}${victim}`), { path: "b/.wh.folder" }],
    ],
    refusal: null,
  },
  "a file over a link, and through a chain of links": {
    layers: (victim) => [
      [
        link("l1", victim),
        link("l2", "l1/folder"),
        link("l3", "/l2/deeper"),
        { path: "l3/precious", content: "changed" },
        link("precious", `${victim}/precious`),
        { path: "precious", content: "changed" },
        folder("l1"),
        { path: "l1/precious", content: "changed" },
      ],
    ],
    refusal: null,
  },
  "a folder entry that gives its mode to a link's target": {
    layers: (victim) => [[link("d", victim), { path: "d/", type: "5", mode: 0o777 }]],
    refusal: null,
  },
  "links into the unpacker's own /proc": {
    layers: () => [
      [link("p", "/proc/self/root"), { path: "p/x", content: "x" }, link("q", "/proc/self/fd"), folder("q/3")],
    ],
    refusal: null,
  },
  "a whiteout of the parent folder": { layers: () => [[{ path: "a/.wh..." }]], refusal: /removes something/ },
  "a whiteout of the folder itself": {
    layers: () => [[{ path: "a/x" }, { path: "a/.wh.." }]],
    refusal: /removes something/,
  },
  "a whiteout of nothing": { layers: () => [[{ path: ".wh." }]], refusal: /removes something/ },
  "a hard link to the host": {
    layers: (victim) => [[hardLink("x", `${victim}/precious`)]],
    refusal: /leads nowhere/,
  },
  "a hard link through a link": {
    layers: (victim) => [[link("a", victim), hardLink("x", "a/precious")]],
    refusal: /leads nowhere/,
  },
  "a hard link to a link": {
    layers: (victim) => [[link("a", `${victim}/precious`), hardLink("x", "a"), { path: "x", content: "changed" }]],
    refusal: /leads nowhere/,
  },
  "a name that leads out": {
    layers: (victim) => [[{ path: `${up}${victim}/precious`, content: "changed" }]],
    refusal: /leads out/,
  },
  "an absolute name stays inside": {
    layers: (victim) => [[{ path: `${victim}/precious`, content: "changed" }]],
    refusal: null,
  },
  "a device": { layers: () => [[{ path: "sda", type: "4" }]], refusal: /device file/ },
  "a file with holes": { layers: () => [[{ path: "x", type: "S" }]], refusal: /holes/ },
  "a folder in a file's place": {
    layers: (victim) => [[link("a", victim), { path: "a", content: "" }, { path: "a/precious", content: "changed" }]],
    refusal: null,
  },
};

/** Where ids are not mapped the same must hold; a few of them tell. */
const FEW = Object.keys(attacks).slice(0, 4);

for (const grade of [...localGrades, "none"] as const)
  describe(`a hostile image on a machine of grade ${grade}`, { skip: localDriverMissing ?? false }, () => {
    const machine = new LocalMachine();
    let driver: LocalDriver | null = null;
    before(async () => {
      driver = await openAt(machine, grade);
    });
    after(async () => {
      await driver?.stop("kill");
      machine.dispose();
    });
    for (const what of grade === localGrades[0] ? Object.keys(attacks) : FEW)
      test(what, async () => {
        using canary = new Canary();
        const { layers, refusal } = attacks[what] ?? assert.fail();
        const said = await load(machine, driver, layers(canary.dir));
        canary.assertUntouched();
        if (refusal) assert.match(said ?? "it was taken", refusal);
        else assert.equal(said, null);
        assert.deepEqual(leftovers(machine), []);
      });

    if (grade !== localGrades[0]) return;
    test("a hundred thousand entries, unpacked by a process that sees nothing of the machine", async () => {
      using canary = new Canary();
      // A folder is swapped for a link to the canary and back, again and again, between whiteouts of the same name.
      const swaps = [folder("d"), link("d", canary.dir)];
      const layer = Array.from({ length: 100_000 }, (_, at) => {
        const swap = at % 200 === 0 ? swaps[(at / 200) % 2] : undefined;
        return swap ?? { path: "d/.wh.precious" };
      });
      for (let seen: Seen | null = null; !seen; ) {
        const loading = load(machine, driver, [layer]);
        seen = await whileRunning(loading, () => lookAtUnpacker(machine.dataDir, canary.dir));
        assert.equal(await loading, null);
        if (seen) assertCaged(seen, grade);
      }
      canary.assertUntouched();
    });
  });

const openAt = (machine: LocalMachine, grade: Grade): Promise<LocalDriver> =>
  machine.open({ grade, allowUnisolated: grade === "none", outbound: "proxy" });

/** What the sender is told; null when the image was taken. */
async function load(machine: LocalMachine, driver: LocalDriver | null, layers: Entry[][]): Promise<string | null> {
  const file = join(machine.dataDir, "attack.tar");
  writeFileSync(file, dockerSave(layers.map((layer) => tar(layer))));
  try {
    await driver?.capabilities.images.load(file, "attack/image:1");
    return null;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return `${code === "bad_request" ? "" : `${code} `}${message}`;
  } finally {
    rmSync(file);
  }
}

/** Folders of loads and jobs that are over. */
const leftovers = ({ dataDir }: LocalMachine): string[] =>
  [join(dataDir, "images"), join(dataDir, "tmp")].flatMap((dir) =>
    readdirSync(dir).filter((name) => /^(\.load|unpack)-/.test(name)),
  );

interface Seen {
  status: string;
  seesVictim: boolean;
  network: string;
  root: string[];
}

/** The unpacker of this driver while it runs; null when there is none just now. */
function lookAtUnpacker(dataDir: string, victim: string): Seen | null {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "latin1").startsWith("/program/sandboxd\0unpack\0")) continue;
      if (!readFileSync(`/proc/${pid}/mountinfo`, "utf8").includes(dataDir.replace(/^.*\//, "/"))) continue;
      return {
        status: readFileSync(`/proc/${pid}/status`, "utf8"),
        seesVictim: existsSync(`/proc/${pid}/root${victim}`),
        network: readlinkSync(`/proc/${pid}/ns/net`),
        root: readdirSync(`/proc/${pid}/root`).sort(),
      };
    } catch {
      // It has ended in between.
    }
  }
  return null;
}

async function whileRunning<T>(running: Promise<unknown>, look: () => T | null): Promise<T | null> {
  let over = false;
  void running.finally(() => {
    over = true;
  });
  for (let seen: T | null = null; ; seen = look()) {
    if (seen || over) return seen;
    await pause(10);
  }
}

function assertCaged({ status, seesVictim, network, root }: Seen, grade: Grade): void {
  const field = (name: string): string => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)?.[1] ?? "";
  if (grade === "mapped") assert.ok(Number(field("Uid")) >= 0x5f80_0000, `it runs as ${field("Uid")}`);
  assert.equal(BigInt(`0x${field("CapEff")}`) & ~0x1bn, 0n, "it may own and change files, in its own namespace");
  assert.deepEqual([field("NoNewPrivs"), field("Seccomp")], ["1", "2"]);
  assert.equal(seesVictim, false);
  assert.notEqual(network, readlinkSync("/proc/self/ns/net"));
  assert.ok(root.includes("target") && !root.includes("home"), root.join(" "));
}
