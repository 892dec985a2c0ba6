/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the shell */
/** Dockerfiles that are built on this machine, with the real driver. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { LocalMachine, localDriverMissing, usersMissing } from "../local/machine.ts";
import { BASE, type BuildBench, openBench } from "./bench.ts";

const lines = (...all: string[]): string => `${all.join("\n")}\n`;

suite("image builds", { skip: localDriverMissing ?? usersMissing }, () => {
  let bench: BuildBench;
  before(async () => {
    bench = await openBench();
  });
  after(() => bench?.[Symbol.asyncDispose]());

  test("RUN, COPY, WORKDIR, ENV and CMD on the base image", async () => {
    const { name, image } = await bench.build(
      {
        Dockerfile: lines(
          "FROM base",
          "ARG WORD=none",
          "ENV GREETING=hello",
          "WORKDIR /srv/app",
          "COPY --chmod=0755 a.txt src/ ./",
          "COPY --chown=user:user *.md docs/",
          "RUN echo $GREETING $WORD > said && rm /etc/debian_version && ln -s said link",
          "RUN <<END",
          "set -e",
          "echo from a script > script",
          "END",
          "USER user",
          "RUN id -un > /tmp/who",
          'CMD ["cat", "said"]',
          "EXPOSE 80",
        ),
        "a.txt": "a",
        "src/deep/b.txt": "b",
        "one.md": "1",
        "two.md": "2",
        "secret.txt": "no",
        ".dockerignore": "secret.txt\n",
      },
      { args: { WORD: "world", UNUSED: "1" } },
    );
    assert.deepEqual(
      [image.workDir, image.argv, image.env.GREETING, image.user?.uid],
      ["/srv/app", ["cat", "said"], "hello", 1000],
    );
    const seen = await bench.run(
      name,
      "find . | sort; cat said script /tmp/who; stat -c '%U %a' docs/one.md a.txt; ls /etc/debian_version /uk /run/build 2>&1 | grep -c 'No such'",
    );
    assert.deepEqual(seen.trim().split("\n"), [
      ...[
        ".",
        "./a.txt",
        "./deep",
        "./deep/b.txt",
        "./docs",
        "./docs/one.md",
        "./docs/two.md",
        "./link",
        "./said",
        "./script",
      ],
      ...["hello world", "from a script", "user", "user 644", "root 755", "2"],
    ]);
    assert.ok(bench.said.some((line) => /No ARG names the build argument UNUSED/.test(line)));
  });

  test("stages: COPY --from with links, modes and owners, on scratch", async () => {
    const { name, image } = await bench.build({
      Dockerfile: lines(
        "FROM base AS tools",
        "RUN mkdir -p /out/bin && cp /bin/busybox /out/bin/sh 2>/dev/null || cp /bin/sh /out/bin/sh",
        "RUN cp -L $(command -v cat) /out/bin/cat && ldd /out/bin/cat /out/bin/sh | grep -o '/lib[^ ]*' | sort -u | while read f; do mkdir -p /out/$(dirname $f); cp -L $f /out/$f; done",
        "RUN echo data > /out/data && chmod 640 /out/data && chown 7:8 /out/data && ln -s data /out/link && chmod u+s /out/bin/cat",
        "FROM scratch",
        "COPY --from=tools /out /",
        "COPY --from=tools /out/../out/link /copied",
        "COPY <<NOTE /note",
        "written here",
        "NOTE",
        'ENTRYPOINT ["/bin/cat"]',
        'CMD ["/note"]',
      ),
    });
    assert.deepEqual(image.argv, ["/bin/cat", "/note"]);
    assert.equal(await bench.run(name, ["/bin/cat", "/note", "/link", "/copied"]), "written here\ndata\ndata\n");
    const back = await bench.build({
      Dockerfile: lines(
        "FROM base",
        `COPY --from=${name} /data /bin/cat /link /x/`,
        "RUN stat -c '%u:%g %a' /x/data /x/cat > /y",
      ),
    });
    assert.equal(await bench.run(back.name, "cat /y"), "7:8 640\n0:0 4755\n");
  });

  test("a step is used again until something that it depends on changes, and only in its own workspace", async () => {
    const Dockerfile = lines("FROM base", "COPY a /a", "ARG WORD", "RUN cat /proc/sys/kernel/random/uuid > /random");
    const build = async (a: string, more = {}): Promise<string> =>
      bench.run((await bench.build({ Dockerfile, a }, more)).name, "cat /random");
    const first = await build("1");
    assert.equal(await build("1"), first, "the same again");
    assert.notEqual(await build("2"), first, "another file");
    assert.notEqual(await build("1", { args: { WORD: "x" } }), first, "another argument");
    assert.notEqual(await build("1", { owner: "other/1" }), first, "another workspace");
    const fresh = await build("1", { noCache: true });
    assert.notEqual(fresh, first, "without the cache");
    assert.equal(await build("1"), fresh, "what was built last");
  });

  test("secrets are there for one command and in no layer; cache folders stay; binds are read-only", async () => {
    const Dockerfile = lines(
      "FROM base AS made",
      "RUN mkdir /lib2 && echo from-stage > /lib2/f",
      "FROM base",
      "RUN --mount=type=secret,id=token --mount=type=secret,id=key,env=KEY --mount=type=cache,target=/cache --mount=type=bind,source=src,target=/ctx --mount=type=bind,from=made,source=/lib2,target=/made --network=none \\",
      "  wc -c < /run/secrets/token > /seen && echo ${#KEY} >> /seen && cat /ctx/f /made/f >> /seen && (touch /ctx/g 2>/dev/null || echo read-only >> /seen) && echo x >> /cache/n && wc -l < /cache/n >> /seen",
      "RUN ls /run/secrets /cache 2>&1 | wc -l >> /seen; echo [$KEY] >> /seen",
    );
    const build = () =>
      bench.build(
        { Dockerfile, "src/f": "from-context\n" },
        { secrets: { token: "s3cr3t-v4lue", key: "k3y" }, noCache: true },
      );
    await build();
    const { name } = await build();
    const seen = await bench.run(name, "cat /seen; ls -d /cache; ls -d /run/secrets /ctx/g 2>/dev/null");
    assert.deepEqual(seen.trim().split("\n"), [
      "12",
      "3",
      "from-context",
      "from-stage",
      "read-only",
      "2",
      "2",
      "[]",
      "/cache",
    ]);

    assert.throws(
      () => execFileSync("grep", ["-r", "-l", "s3cr3t-v4lue", bench.machine.dataDir]),
      "no file of the machine holds the secret",
    );
  });

  test("failures name the line, the reason and the end of the output", async () => {
    const rows: [string, RegExp][] = [
      ["FROM base\nRUN echo before && echo why >&2 && exit 3", /^Dockerfile line 2: RUN .*: exit code 3\.\nwhy$/],
      ["FROM base\nCOPY missing /x", /line 2: 'missing' is not in the context/],
      ["FROM base\nCOPY --from=base /missing /x", /line 2: COPY .*exit code 1.*\n'missing' is not there/s],
      ["FROM base\nUSER nobody-here\nRUN true", /line 3: RUN true: .*USER 'nobody-here'/],
      ["FROM base\nCOPY --chown=nobody-here a /x", /the user 'nobody-here' is not in/],
      ["FROM base\nWORKDIR /etc/passwd/x", /not a directory/],
      ["FROM no/such:image\nRUN true", /no image/i],
    ];
    for (const [Dockerfile, reason] of rows)
      await assert.rejects(bench.build({ Dockerfile, a: "" }), { code: "bad_request", message: reason });
    assert.deepEqual(await bench.driver.list(), [], "no workload is left");
  });

  test("what a killed server left of a build is removed, and the build begins anew", async (t) => {
    const machine = new LocalMachine();
    t.after(() => machine.dispose());
    const killed = await machine.open();
    const limits = { memoryMb: 256, cpus: 1 };
    const exec = { argv: ["sleep", "600"] };
    await killed.capabilities.drives.create("build-left", { temporary: true });
    await killed.create({ uid: "again-step", name: "build", image: BASE, env: {}, limits, network: "closed", exec });
    await killed.stop("keep");
    const next = await openBench({}, machine);
    t.after(() => next[Symbol.asyncDispose]());
    assert.deepEqual(readdirSync(join(machine.dataDir, "drives")), []);
    assert.equal((await next.driver.list()).length, 1, "the step of the killed server still runs");
    const { name } = await next.build({ Dockerfile: "FROM base\nRUN echo made > /made\n" }, { id: "again" });
    assert.deepEqual(await next.driver.list(), []);
    assert.equal(await next.run(name, "cat /made"), "made\n");
  });
});
