/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Dockerfiles */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BuildConfig, EMPTY_CONFIG } from "./config.ts";
import { ignoreRules } from "./ignore.ts";
import { DockerfileRefused } from "./refusal.ts";
import { neededStages, readDockerfile } from "./stages.ts";
import { planStage, type StagePlan } from "./steps.ts";

interface Given {
  args?: Record<string, string>;
  base?: Partial<BuildConfig>;
  target?: string;
}

const lines = (...all: string[]): string => `${all.join("\n")}\n`;

/** The plan of the target stage. */
function plan(text: string, { args = {}, base = {}, target }: Given = {}): StagePlan {
  const dockerfile = readDockerfile(text, { args, target, architecture: "amd64" });
  return planStage(dockerfile, dockerfile.target, { base: { ...EMPTY_CONFIG, ...base }, args, architecture: "amd64" });
}

const commandsIn = (planned: StagePlan): string[] =>
  planned.steps.flatMap((step) => (step.kind === "run" ? [step.argv.at(-1) ?? ""] : []));

test("names that every object has are variables like others: unset, or set", () => {
  const text = lines(
    "FROM base",
    "ARG constructor",
    "ARG toString=mine",
    "WORKDIR /x${constructor}${valueOf}/${toString}",
  );
  assert.equal(plan(text).config.workDir, "/x/mine");
  assert.equal(plan(text, { args: { constructor: "given" } }).config.workDir, "/xgiven/mine");
  for (const line of ["ENV __proto__=x", "LABEL __proto__=x", "ARG __proto__=x"])
    assert.throws(() => plan(`FROM base\n${line}`), DockerfileRefused, line);
});

test("each instruction leads to its step or its part of the configuration", () => {
  const config = (text: string, given?: Given): BuildConfig => plan(`FROM base\n${text}`, given).config;
  const rows: [string, unknown, unknown][] = [
    [
      "continued lines are joined, comments between them dropped",
      commandsIn(plan(lines("FROM a", "RUN one \\", "# no", "", "  two"))),
      ["one   two"],
    ],
    [
      "RUN in the shell form keeps variables for the shell",
      commandsIn(plan("FROM a\nRUN echo $X 'y'")),
      ["echo $X 'y'"],
    ],
    [
      "RUN in the exec form",
      plan('FROM a\nRUN ["a", "b c"]').steps[0]?.kind === "run" &&
        (plan('FROM a\nRUN ["a", "b c"]').steps[0] as { argv: string[] }).argv,
      ["a", "b c"],
    ],
    [
      "a here-document is the script",
      commandsIn(plan(lines("FROM a", "RUN <<EOF", "one $V", "  two", "EOF"))),
      ["one $V\n  two\n"],
    ],
    [
      "the shell reads other here-documents",
      commandsIn(plan(lines("FROM a", "RUN cat <<-'E' > x", "\thi", "\tE"))),
      ["cat <<-'E' > x\nhi\nE\n"],
    ],
    ["a shift of the shell is no here-document", commandsIn(plan("FROM a\nRUN echo $((1<<A))")), ["echo $((1<<A))"]],
    [
      "SHELL runs later commands",
      (plan('FROM a\nSHELL ["/bin/bash", "-ec"]\nRUN x').steps[0] as { argv: string[] }).argv,
      ["/bin/bash", "-ec", "x"],
    ],
    [
      "ENV pairs with quotes and escapes",
      config("ENV A=1 B=\"x y\" C=a\\ b D='$A'").env,
      { ...EMPTY_CONFIG.env, A: "1", B: "x y", C: "a b", D: "$A" },
    ],
    ["ENV in the old form", config("ENV A some words").env.A, "some words"],
    [
      "ENV sees the base image's variables",
      config("ENV PATH=/x:$PATH", { base: { env: { PATH: "/bin" } } }).env.PATH,
      "/x:/bin",
    ],
    ["ENV values of one line see those from before it", config("ENV A=1\nENV A=2 B=$A").env.B, "1"],
    [
      "forms of variables",
      config("ENV E=\nENV A=${X:-d} B=${E:-d} C=${E-d} D=${E:+y}z F=${X:-${E:-in}}").env,
      { ...EMPTY_CONFIG.env, E: "", A: "d", B: "d", C: "", D: "z", F: "in" },
    ],
    ["ARG has its default", config("ARG V=1\nENV A=$V").env.A, "1"],
    ["ARG has the build's value", config("ARG V=1\nENV A=$V", { args: { V: "2" } }).env.A, "2"],
    ["an argument that no ARG names is unknown", config("ENV A=[$V]", { args: { V: "2" } }).env.A, "[]"],
    ["ENV counts before ARG", config("ENV V=env\nARG V=arg\nENV A=$V").env.A, "env"],
    ["the platform's arguments", config("ARG TARGETARCH\nENV A=$TARGETARCH").env.A, "amd64"],
    ["WORKDIR is relative to the one before", config("WORKDIR /a\nWORKDIR b/../c").workDir, "/a/c"],
    ["ENTRYPOINT drops the base image's CMD", config("ENTRYPOINT x", { base: { cmd: ["y"] } }).cmd, null],
    ["ENTRYPOINT keeps the stage's own CMD", config('CMD ["y"]\nENTRYPOINT ["x"]').cmd, ["y"]],
    ["EXPOSE", config("EXPOSE 80 90/udp 80/tcp").ports, ["80/tcp", "90/udp"]],
    ["LABEL", config('LABEL a.b="c d" e=f').labels, { "a.b": "c d", e: "f" }],
    [
      "HEALTHCHECK",
      config("HEALTHCHECK --interval=1m30s --retries=3 CMD curl x").healthcheck,
      { test: ["CMD-SHELL", "curl x"], interval: 90e9, retries: 3 },
    ],
    ["VOLUME", config('VOLUME ["/a", "/b"]').volumes, ["/a", "/b"]],
    ["another escape character", commandsIn(plan(lines("# escape=`", "FROM a", "RUN one `", "two"))), ["one two"]],
  ];
  for (const [name, actual, expected] of rows) assert.deepEqual(actual, expected, name);
});

test("COPY and ADD name their sources below the context or the stage, and their target absolutely", () => {
  const step = (text: string): unknown => {
    const [last] = plan(lines("FROM base", "WORKDIR /app", ...text.split("\n"))).steps.slice(-1);
    const { line: _, text: __, kind: ___, ...rest } = last ?? {};
    return rest;
  };
  const plain = { from: null, files: [], owner: null, mode: null, unpacks: false };
  const rows: [string, object][] = [
    ["COPY a /b", { sources: ["a"], target: "/b", intoFolder: false }],
    ["COPY . .", { sources: [""], target: "/app", intoFolder: true }],
    ["COPY /a ./b/ x/", { sources: ["a", "b/"], target: "/app/x", intoFolder: true }],
    ['COPY ["a b", "/c"]', { sources: ["a b"], target: "/c", intoFolder: false }],
    [
      "COPY --from=0 --chown=1:2 --chmod=0755 /x/../../y /z",
      { from: "0", sources: ["y"], target: "/z", intoFolder: false, owner: "1:2", mode: 0o755 },
    ],
    ["ADD a.tar.gz /", { sources: ["a.tar.gz"], target: "/", intoFolder: true, unpacks: true }],
    [
      "COPY <<one <<'two' /d/\n$HOME\none\n$HOME\ntwo",
      {
        sources: [],
        target: "/d",
        intoFolder: true,
        files: [
          { name: "one", content: "\n" },
          { name: "two", content: "$HOME\n" },
        ],
      },
    ],
  ];
  for (const [text, expected] of rows) assert.deepEqual(step(text), { ...plain, ...expected }, text);
});

test("RUN --mount", () => {
  const [step] = plan(
    lines(
      "FROM a",
      "WORKDIR /w",
      "RUN --mount=type=cache,target=cache --mount=type=secret,id=token --mount=type=secret,id=k,env=KEY --mount=from=b,source=/s,dst=/d --network=none x",
    ),
  ).steps.slice(-1);
  assert.ok(step?.kind === "run");
  assert.equal(step.network, false);
  assert.deepEqual(step.mounts, [
    { type: "cache", id: "/w/cache", target: "/w/cache" },
    { type: "secret", id: "token", target: "/run/secrets/token", env: null, required: false },
    { type: "secret", id: "k", target: null, env: "KEY", required: false },
    { type: "bind", from: "b", source: "/s", target: "/d" },
  ]);
});

test("stages stand on images, on scratch and on each other, and only those that the target needs are built", () => {
  const text = lines(
    "ARG V=20",
    "FROM node:${V} AS build",
    "FROM build AS test",
    "FROM scratch AS Tools",
    "FROM debian",
    "COPY --from=tools /a /b",
    "COPY --from=0 /a /b",
    "COPY --from=nginx:1 /a /b",
  );
  const dockerfile = readDockerfile(text, { args: {}, architecture: "amd64" });
  assert.deepEqual(
    dockerfile.stages.map(({ name, from }) => [name, from]),
    [
      ["build", { image: "node:20" }],
      ["test", { stage: 0 }],
      ["tools", "scratch"],
      [null, { image: "debian" }],
    ],
  );
  assert.deepEqual(neededStages(dockerfile), [0, 2, 3]);
  const tested = readDockerfile(text, { args: { V: "22" }, target: "test", architecture: "amd64" });
  assert.deepEqual([neededStages(tested), tested.stages[0]?.from], [[0, 1], { image: "node:22" }]);
});

/** A variable of 128 KB, in nine lines. */
const GROWN = `FROM a\nENV A=${"x".repeat(1000)}\n${"ENV A=$A$A\n".repeat(7)}`;
const many = (word: string, count: number): string =>
  Array.from({ length: count }, (_, index) => word.replace("%", String(index))).join(" ");

test("what is not supported is refused by line and word", () => {
  const rows: [string, RegExp][] = [
    ["RUN x", /line 1: 'RUN' comes before the first FROM/],
    ["", /no FROM/],
    ["FROM a\nONBUILD RUN x", /line 2: 'ONBUILD'/],
    ["FROM a\nFOO x", /line 2: 'FOO' is not an instruction/],
    ["FROM --platform=linux/arm64 a", /'linux\/arm64' is not this machine's/],
    ["FROM a AS", /not IMAGE \[AS NAME\]/],
    ["FROM $NOTHING", /stands for no image/],
    ["FROM a\nCOPY ../x /y", /line 2: '..\/x' leads out of the context/],
    ["FROM a\nCOPY a/../../x /y", /leads out of the context/],
    ["FROM a\nRUN --mount=type=bind,source=a/../../x,target=/y z", /line 2: 'a\/..\/..\/x' leads out of the context/],
    ["FROM a\nADD https://x/y /z", /line 2: ADD of 'https:\/\/x\/y' is not supported/],
    ["FROM a\nCOPY --parents a b", /COPY with '--parents'/],
    ["FROM a\nCOPY --chmod=u+x a b", /the mode 'u\+x'/],
    ["FROM a\nRUN --security=insecure x", /'--security=insecure'/],
    ["FROM a\nRUN --network=host x", /'--network=host'/],
    ["FROM a\nRUN --mount=type=ssh x", /type 'ssh'/],
    ["FROM a\nRUN --mount=type=secret,id=a,target=/etc/x y", /target '\/etc\/x' of a secret/],
    ["FROM a\nRUN <<EOF\nx", /here-document 'EOF' has no end/],
    ["FROM a\nEXPOSE x", /'x' is not a port/],
    ['FROM a\nENV A="${B:?give one}"', /variable B is not set: give one/],
    ["FROM a\nENV A='x", /quote without an end/],
    ["FROM a\nSHELL bash", /JSON list/],
    [`FROM a\n${"RUN x\n".repeat(1001)}`, /more than 1000 instructions/],
    [`FROM a\nENV A=${"x".repeat(200_000)}`, /more than 64 KB/],
    [`FROM a\nENV A=xxxxxxxxxx\n${"ENV A=$A$A$A$A$A$A$A$A\n".repeat(20)}`, /becomes too long/],
    [`${GROWN}COPY ${"$A ".repeat(15_000)}/t\n`, /line 10: the words of the stage become too long/],
    [`${GROWN}LABEL ${many("${A}%=1", 5000)}\n`, /line 10: the words of the stage become too long/],
    [`${GROWN}ENV ${many("B%=$A", 30)}\n`, /line 10: the variables become too long/],
    [`FROM a\nENV A=${"${B:-".repeat(5000)}x${"}".repeat(5000)}\n`, /line 2: .* nested too deep/],
  ];
  for (const [text, reason] of rows)
    assert.throws(
      () => plan(text),
      (error) => error instanceof DockerfileRefused && reason.test(error.message),
      text.slice(0, 60),
    );
  assert.throws(() => plan("FROM a", { target: "b" }), /no stage 'b'/);
});

test("instructions without effect are told", () => {
  const { notes } = plan("FROM a\nVOLUME /x\nHEALTHCHECK NONE\nSTOPSIGNAL INT");
  assert.deepEqual(
    notes.map((note) => /line (\d): (\w+) is kept/.exec(note)?.slice(1)),
    [
      ["2", "VOLUME"],
      ["3", "HEALTHCHECK"],
      ["4", "STOPSIGNAL"],
    ],
  );
});

test(".dockerignore: the last rule that fits decides", () => {
  const rows: [string, string, boolean][] = [
    ["node_modules", "node_modules/a/b", true],
    ["node_modules", "x/node_modules", false],
    ["**/node_modules", "x/y/node_modules/z", true],
    ["**/node_modules", "node_modules", true],
    ["*.log", "a.log", true],
    ["*.log", "x/a.log", false],
    ["**/*.log", "x/a.log", true],
    ["/a/", "a/b", true],
    ["*\n!keep", "keep", false],
    ["*\n!keep", "drop", true],
    ["docs\n!docs/README.md", "docs/README.md", false],
    ["a?c", "abc", true],
    ["[a-c].txt", "b.txt", true],
    ["[^a-c].txt", "b.txt", false],
    ["# a\n\n", "# a", false],
    ["a.b", "axb", false],
    ["[z-a]", "z", false],
    ["a/**", "a/b/c", true],
    ["a/**/c", "a/c", true],
    ["a/**/c", "a/b/b/c", true],
    ["a/**/c", "a/bc", false],
    ["\\*", "*", true],
    ["\\*", "x", false],
    // A regular expression would take longer than the universe has been there.
    [`${"*a".repeat(200)}b`, "a".repeat(250), false],
  ];
  for (const [text, path, expected] of rows) assert.equal(ignoreRules(text)(path), expected, `${text} on ${path}`);
});
