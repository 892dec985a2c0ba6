/**
 * A workload puts what is no plain file into its root, and is forked: devices, set-id files, capabilities, marks of
 * overlays, hard links, sockets and pipes. The fork gets no right and no file that the workload did not have.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, suite, test } from "node:test";
import type { LocalDriver } from "../../src/node/drivers/local/local-driver.ts";
import type { Grade, Observed } from "../../src/node/workload.ts";
import { LocalMachine, localDriverMissing, localGrades } from "../local/machine.ts";
import { run } from "../local/run.ts";
import { LONG } from "../long.ts";

/** Both grades of root make forks in the same way; `contained` has root's own ids, so more can go wrong. */
const GRADES: readonly Grade[] = LONG ? localGrades : localGrades.slice(-1);

/** Makes everything that the kernel lets it make, and prints each thing that it made. */
const PREPARE = `
import os, socket, struct
os.makedirs("/hostile/dir"); os.chdir("/hostile")
open("dir/own", "w").write("own")
def attempt(name, work):
    try: work(); print("made", name)
    except OSError as error: print("refused", name, error.errno)
for name, kind, major, minor in [("gone", 0o020000, 0, 0), ("null", 0o020000, 1, 3), ("mem", 0o020000, 1, 1),
                                 ("fuse", 0o020000, 10, 229), ("loop", 0o060000, 7, 0), ("vda", 0o060000, 254, 0),
                                 ("sda", 0o060000, 8, 0)]:
    attempt(name, lambda: os.mknod(name, kind | 0o666, os.makedev(major, minor)))
os.mkfifo("pipe"); socket.socket(socket.AF_UNIX).bind("socket")
open("once", "w").write("own"); os.link("once", "twice")
open("su", "wb").write(open("/bin/true", "rb").read()); os.chmod("su", 0o6755)
# All capabilities, permitted and effective; the second form is bound to the root of a user namespace.
everything = struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xffffffff, 0)
attempt("capability", lambda: os.setxattr("su", "security.capability", everything))
for space in ("trusted", "user"):
    for key, value in [("opaque", b"y"), ("redirect", b"/../../../../../../etc"), ("metacopy", b""), ("origin", b"x"),
                       ("impure", b"y"), ("nlink", b"U+1"), ("whiteout", b"y")]:
        for target in ("dir", "once"):
            attempt(f"{space}.overlay.{key} {target}", lambda: os.setxattr(target, f"{space}.overlay.{key}", value))
attempt("user.mark", lambda: os.setxattr("once", "user.mark", b"marked"))
`;

/** Prints what a fork can read of it all. Reads a device only if the kernel opens it. */
const LOOK = `
import os, stat
os.chdir("/hostile")
for name in ("gone", "null", "mem", "fuse", "loop", "vda", "sda"):
    try: os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK)); print("opened", name)
    except OSError: pass
print("dir", sorted(os.listdir("dir")), open("dir/own").read())
print("links", open("once").read(), open("twice").read())
print("kinds", stat.S_ISFIFO(os.lstat("pipe").st_mode), oct(os.stat("su").st_mode & 0o7777), os.stat("su").st_uid)
caps = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapBnd")]
print("bound", *caps)
`;

const linesOf = (output: string, word: string): string[] =>
  output
    .split("\n")
    .filter((line) => line.startsWith(`${word} `))
    .map((line) => line.slice(word.length + 1).trim());

if (localDriverMissing) test("forks", { skip: localDriverMissing }, () => {});
else
  for (const grade of GRADES)
    suite(`a workload of grade ${grade} attacks its forks`, () => {
      let machine: LocalMachine;
      let driver: LocalDriver;
      let box: Observed;
      let fork: Observed;
      let made: string[];

      const spec = (uid: string, snapshot?: string) => ({
        ...{ uid, name: uid, image: "berth/base-image:latest", env: {}, network: "closed" as const },
        limits: { memoryMb: 256, cpus: 1, pids: 128 },
        ...(snapshot === undefined ? {} : { snapshot }),
      });
      const python = async (where: Observed, text: string): Promise<string> => {
        const { exitCode, output } = await run(where, `python3 - <<'END'\n${text}\nEND`);
        assert.equal(exitCode, 0, output);
        return output;
      };

      before(async () => {
        machine = new LocalMachine();
        driver = await machine.open({ grade });
        box = await driver.create(spec("box"));
        made = linesOf(await python(box, PREPARE), "made");
        await driver.capabilities.snapshots.take("box", "hostile");
        fork = await driver.create(spec("fork", "hostile"));
      });
      after(async () => {
        await driver?.stop("kill");
        machine?.dispose();
      });

      test("no device of the machine opens, neither before nor after the fork", async () => {
        for (const where of [box, fork])
          assert.deepEqual(
            linesOf(await python(where, LOOK), "opened").filter(
              // The driver gives every workload a /dev/null of its own.
              (name) => name !== "null",
            ),
            [],
          );
      });

      test("marks of overlays are refused or kept as plain attributes: the fork shows its own files alone", async () => {
        assert.deepEqual(
          made.filter((name) => name.startsWith("trusted.")),
          [],
        );
        const output = await python(fork, LOOK);
        assert.deepEqual(linesOf(output, "dir"), ["['own'] own"]);
        assert.deepEqual(linesOf(output, "links"), ["own own"]);
      });

      test("set-id files and capabilities give a fork no more than its start gave it", async () => {
        const [before, later] = [await python(box, LOOK), await python(fork, LOOK)];
        assert.deepEqual(linesOf(later, "bound"), linesOf(before, "bound"));
        assert.deepEqual(linesOf(later, "kinds"), linesOf(before, "kinds"));
        // NoNewPrivs or an identity of its own keeps set-id files inside; nothing outside reaches the copy.
        const reached = execFileSync("find", [machine.dataDir, "-maxdepth", "0", "-perm", "/077"], {
          encoding: "utf8",
        });
        assert.equal(reached, "", "no other user reaches the set-id files in the data folder");
      });

      test("a fork of a fork is the same again", async () => {
        await driver.capabilities.snapshots.take("fork", "again");
        const second = await driver.create(spec("second", "again"));
        assert.deepEqual(
          (await python(second, LOOK)).split("\n").sort(),
          (await python(fork, LOOK)).split("\n").sort(),
        );
      });
    });
