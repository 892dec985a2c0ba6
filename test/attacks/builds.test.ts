/** Dockerfiles of strangers: what a build may not reach, keep or use up. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type BuildBench, openBench } from "../builds/bench.ts";
import { localDriverMissing } from "../local/machine.ts";
import { eventually } from "../sandboxd-harness.ts";

const lines = (...all: string[]): string => `${all.join("\n")}\n`;

suite("hostile builds", { skip: localDriverMissing ?? false }, () => {
  let bench: BuildBench;
  before(async () => {
    bench = await openBench();
  });
  after(() => bench?.[Symbol.asyncDispose]());

  test("links and .. of a stage lead nowhere but into its own root, and replace nothing of the machine", async () => {
    const outside = join(bench.machine.dataDir, "outside");
    writeFileSync(outside, "of the machine");
    const { name } = await bench.build({
      Dockerfile: lines(
        "FROM base AS bad",
        `RUN ln -s ${bench.machine.dataDir} /machine && ln -s / /up && mkdir /d && ln -s ../../../../../../etc/hostname /d/l && echo mine > /etc/hostname`,
        // Links in the place of folders that the platform makes for itself.
        "RUN ln -s /etc /uk && rm -rf /run/build /run/secrets; ln -s /etc /run/build; ln -s /etc /run/secrets; true",
        "FROM base",
        "COPY --from=bad /up/up/etc/hostname /one",
        "COPY --from=bad /d/../../../../../../etc/hostname /two",
        "COPY --from=bad /d /three",
        "RUN ln -s /etc /target",
        "COPY --from=bad /etc/hostname /target/copied",
      ),
    });
    const seen = await bench.run(name, "cat /one /two /etc/copied; readlink /three/l");
    assert.equal(seen, "mine\nmine\nmine\n../../../../../../etc/hostname\n");
    const missing = { message: /is not there/ };
    await assert.rejects(
      bench.build({ Dockerfile: "FROM base AS bad\nRUN ln -s /nowhere /l\nFROM base\nCOPY --from=bad /l /x\n" }),
      missing,
    );
    const machine = `FROM base AS bad\nRUN ln -s ${bench.machine.dataDir} /m\nFROM base\nCOPY --from=bad /m/outside /x\n`;
    await assert.rejects(bench.build({ Dockerfile: machine }), missing);
    assert.equal(statSync(outside).size, 14);
  });

  test("device files, the machine's folders and mounts over the platform's own are refused", async () => {
    const rows: [string, RegExp][] = [
      ["RUN mknod /dev-sda b 8 0", /exit code/],
      ["RUN mknod /null c 1 3", /exit code/],
      ["RUN mount -t tmpfs none /mnt", /exit code/],
      ["RUN mv /usr /usr2", /exit code/],
      ["RUN --mount=type=cache,target=/proc true", /nothing can be mounted over \/proc/],
      ["RUN --mount=type=cache,target=/run/berth/host true", /nothing can be mounted over \/run\/berth/],
      ["RUN --mount=type=bind,source=../..,target=/x true", /'..\/..' leads out of the context/],
      [`RUN ls ${bench.machine.dataDir}`, /exit code/],
    ];
    for (const [line, reason] of rows)
      await assert.rejects(bench.build({ Dockerfile: `FROM base\n${line}\n`, a: "" }), { message: reason }, line);
  });

  test("set-user-id files stay behind a folder that only the server's user may enter", async () => {
    await bench.build({ Dockerfile: "FROM base\nRUN cp /bin/true /su && chmod 6755 /su\n" });
    assert.equal(statSync(bench.machine.dataDir).mode & 0o077, 0);
  });

  test("names of any bytes are kept by RUN and COPY --from", async () => {
    const odd = "printf 'odd\\377\\n name'";
    const { name } = await bench.build({
      Dockerfile: lines(
        "FROM base AS made",
        `RUN mkdir /o && echo kept > "/o/$(${odd})"`,
        "FROM base",
        "COPY --from=made /o /p",
      ),
    });
    assert.equal(await bench.run(name, `cat "/p/$(${odd})"`), "kept\n");
  });

  test("output without end is cut, and a build ends when the disk runs short", async () => {
    const { name } = await bench.build({ Dockerfile: "FROM base\nRUN yes | head -c 60000000; echo done > /made\n" });
    assert.equal(await bench.run(name, "cat /made"), "done\n");
    const filling = bench.build({ Dockerfile: "FROM base\nRUN sleep 600\n" });
    bench.shortage = "the disk is full";
    await assert.rejects(filling, { message: /The build was ended: the disk is full/ });
    bench.shortage = null;
    assert.deepEqual(await bench.driver.list(), []);
  });

  test("folders of --mount=type=cache count: a build that fills them ends, and the next one begins with empty ones", async () => {
    bench.cacheBytesMax = 4 * 1024 ** 2;
    const filling = (id: string, mb: number): string =>
      `RUN --mount=type=cache,id=${id},target=/c head -c ${mb}M /dev/urandom > /c/f`;
    try {
      await assert.rejects(bench.build({ Dockerfile: lines("FROM base", filling("one", 6)) }), {
        message: /caches of the build hold 6\.\d MB, and may hold 4\.0 MB/,
      });
      const both = lines("FROM base", filling("two", 3), filling("three", 3));
      await assert.rejects(bench.build({ Dockerfile: both }), { message: /line 3: .*caches of the build/ });
      const { name } = await bench.build({
        Dockerfile: lines("FROM base", "RUN --mount=type=cache,id=one,target=/c ls /c > /seen"),
      });
      assert.equal(await bench.run(name, "cat /seen"), "");
    } finally {
      bench.cacheBytesMax = undefined;
    }
  });

  test("all caches of a workspace have one bound: builds with ever new ids push out the oldest", async () => {
    bench.cacheBytesMax = 4 * 1024 ** 2;
    const own = { owner: "caches/1" };
    const mount = (id: string): string => `RUN --mount=type=cache,id=${id},target=/c`;
    const drives = join(bench.machine.dataDir, "drives");
    const before = readdirSync(drives);
    const held = (): string[] => readdirSync(drives).filter((each) => !before.includes(each));
    try {
      for (const id of ["a", "b", "c", "d"]) {
        const fill = `${mount(id)} head -c 1500K /dev/urandom > /c/f`;
        await bench.build({ Dockerfile: lines("FROM base", fill) }, own);
      }
      assert.equal(held().length, 2, "1.5 MB each, in 4 MB");
      const other = lines("FROM base", `${mount("a")} ls /c > /seen`, `${mount("d")} ls /c >> /seen`);
      const { name } = await bench.build({ Dockerfile: other }, own);
      assert.equal(await bench.run(name, "cat /seen"), "f\n", "the oldest is gone, the newest is there");
    } finally {
      bench.cacheBytesMax = undefined;
    }
  });

  test("what a step uses is held while it runs: a shortage removes neither its image nor its caches", async () => {
    const going = bench.build({
      Dockerfile: lines(
        "FROM base",
        "RUN --mount=type=cache,id=held,target=/c echo kept > /c/f; until [ -e /c/go ]; do sleep 0.1; done; cat /c/f > /made",
      ),
    });
    const drives = join(bench.machine.dataDir, "drives");
    const cacheOf = (): string | undefined =>
      readdirSync(drives).find(
        (each) =>
          each.includes("build-cache-") &&
          existsSync(join(drives, each, "f")) &&
          statSync(join(drives, each, "f")).size === 5,
      );
    await eventually(async () => cacheOf() !== undefined);
    const cache = cacheOf() ?? "";
    await bench.builder.sweep(() => true);
    const left = (await bench.driver.capabilities.images.list()).map(({ name }) => name);
    assert.ok(
      left.some((name) => /^step\/build-\d+-step/.test(name)),
      left.join(),
    );
    assert.ok(bench.builder.isHeld(cache));
    writeFileSync(join(drives, cache, "go"), "");
    const { name } = await going;
    assert.equal(await bench.run(name, "cat /made"), "kept\n");
    assert.ok(!bench.builder.isHeld(cache));
  });

  test("failed builds leave no drive, no workload and no image of a step that was not finished", async () => {
    const images = bench.driver.capabilities.images;
    const before = (await images.list()).length;
    await assert.rejects(bench.build({ Dockerfile: "FROM base\nCOPY a /a\nRUN exit 1\n", a: "x" }));
    assert.equal((await images.list()).length, before + 1, "the step that copied");
    const drives = readdirSync(join(bench.machine.dataDir, "drives")).filter((each) => !each.includes("build-cache-"));
    assert.deepEqual(drives, []);
    await bench.builder.sweep(() => true);
    assert.ok(!(await images.list()).some(({ name }) => name.startsWith("step/")));
  });
});
