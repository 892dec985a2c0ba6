/** The house rules that a reader could otherwise only hope for: who may import whom, and how long a file may be. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";

const LINES_MAX = 500;

/**
 * Room -> what it may import besides itself. A pattern ending in "/" is a whole room; otherwise it names files.
 * Rooms meet in the store, never in each other.
 */
const MAY_IMPORT: Record<string, string[]> = {
  "src/main.ts": ["src/operator/", "src/cli/", "src/lib/"],
  "src/app.ts": ["src/"],
  "src/composition/": ["src/"],
  "src/config.ts": ["src/lib/"],
  "src/http/": ["src/config.ts", "src/contract/", "src/lib/"],
  "src/models/": ["src/contract/", "src/http/", "src/kinds/index.ts", "src/store/", "src/metering/", "src/lib/"],
  "src/s3/": ["src/lib/"],
  "src/drivefs/": ["src/lib/"],
  "src/peers/": ["src/contract/", "src/http/", "src/lib/"],
  "src/acme/": ["src/lib/"],
  "src/lib/": [],
  "src/contract/": ["src/lib/"],
  "src/kinds/": [
    "src/acme/",
    "src/contract/",
    "src/lib/",
    "src/node/blobs/",
    "src/node/builds/",
    "src/node/dial/",
    "src/node/capabilities/",
    "src/node/driver.ts",
    "src/node/images/",
    "src/node/workload.ts",
    "src/node/logs/",
    "src/node/identity.ts",
    "src/node/nodes.ts",
    "src/registry/",
    "src/node/placement.ts",
    "src/store/",
    "src/auth/",
    "src/metering/",
  ],
  "src/store/": ["src/contract/", "src/lib/"],
  "src/unpack/": [],
  "src/dockerfile/": ["src/lib/"],
  "src/registry/": ["src/contract/", "src/lib/"],
  "src/node/": ["src/contract/", "src/dockerfile/", "src/lib/", "src/registry/", "src/unpack/"],
  "src/node/blobs/": ["src/contract/", "src/lib/"],
  "src/node/logs/": [
    "src/contract/",
    "src/lib/",
    "src/node/dial/",
    "src/node/driver.ts",
    "src/node/forwarding-driver.ts",
    "src/node/workload.ts",
  ],
  "src/auth/": ["src/contract/", "src/store/", "src/lib/"],
  "src/metering/": ["src/contract/", "src/store/", "src/lib/"],
  "src/api/": ["src/contract/", "src/http/", "src/kinds/", "src/store/", "src/auth/", "src/metering/", "src/lib/"],
  "src/gateway/": [
    "src/contract/",
    "src/http/",
    "src/kinds/index.ts",
    "src/store/",
    "src/auth/",
    "src/metering/",
    "src/node/dial/",
    "src/lib/",
  ],
  "src/edge/": ["src/contract/", "src/gateway/", "src/http/", "src/node/dial/", "src/lib/"],
  "src/facades/": ["src/contract/", "src/gateway/", "src/http/", "src/models/", "src/store/", "src/lib/"],
  "src/reconcile/": [
    "src/contract/",
    "src/kinds/behaviour.ts",
    "src/kinds/port.ts",
    "src/kinds/index.ts",
    "src/store/",
    "src/metering/",
    "src/node/driver.ts",
    "src/lib/",
  ],
  "src/sandboxd/": ["src/contract/sandbox-wire.ts", "src/lib/", "src/unpack/"],
  "src/operator/": [
    "src/app.ts",
    "src/config.ts",
    "src/auth/passwords.ts",
    "src/auth/rotate-key.ts",
    "src/auth/secret-key.ts",
    "src/auth/secret-key-files.ts",
    "src/cli/",
    "src/contract/",
    "src/node/",
    "src/s3/client/",
    "src/store/",
    "src/lib/",
  ],
  "src/client/": ["src/contract/", "src/kinds/index.ts", "src/lib/"],
  "src/cli/": [
    "src/client/",
    "src/contract/",
    "src/dockerfile/ignore.ts",
    "src/kinds/audit/operations.ts",
    "src/kinds/drive/operations.ts",
    "src/kinds/image/operations.ts",
    "src/kinds/index.ts",
    "src/kinds/workload/start-command.ts",
    "src/lib/",
  ],
  "sdk/typescript/src/": [],
  // The console: `ui` knows no API, and pages know everything else.
  "console/lib/": [],
  "console/generated/": ["console/lib/"],
  "console/api/": ["console/lib/", "console/generated/"],
  "console/ui/": ["console/lib/"],
  "console/table/": ["console/lib/", "console/ui/"],
  "console/form/": ["console/lib/", "console/ui/"],
  "console/views/": ["console/lib/", "console/generated/", "console/ui/", "console/api/"],
  "console/pages/": [
    "console/lib/",
    "console/generated/",
    "console/ui/",
    "console/table/",
    "console/form/",
    "console/views/",
    "console/api/",
  ],
  "console/": ["console/"],
};

const sources = globSync(["src/**/*.ts", "sdk/typescript/src/**/*.ts", "console/**/*.{ts,tsx}"])
  .filter((file) => !file.includes("/generated/"))
  .sort();
const isTest = (file: string): boolean => /\.test\.ts$/.test(file);
const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"(\.[^"]+)"|import\("(\.[^"]+)"\)/g;

const roomOf = (file: string): string | undefined =>
  Object.keys(MAY_IMPORT)
    .filter((room) => matches(file, room))
    .sort((a, b) => b.length - a.length)[0];

const matches = (file: string, pattern: string): boolean =>
  pattern.endsWith("/") ? file.startsWith(pattern) : file === pattern;

const importsOf = (file: string): string[] =>
  [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, statical, dynamic]) =>
    relative(".", join(dirname(file), statical ?? dynamic ?? "")),
  );

test("imports follow the house plan", () => {
  const wrong: string[] = [];
  for (const file of sources.filter((name) => !isTest(name))) {
    const room = roomOf(file);
    if (!room) {
      wrong.push(`${file} belongs to no room: add its folder to MAY_IMPORT`);
      continue;
    }
    for (const target of importsOf(file)) {
      const allowed = [room, ...(MAY_IMPORT[room] ?? [])];
      if (!/^(src|console)\//.test(target)) continue;
      if (!allowed.some((pattern) => matches(target, pattern))) wrong.push(`${file} may not import ${target}`);
    }
  }
  assert.deepEqual(wrong, []);
});

/** Types count too: a circle of types is two files that cannot be read one after the other. */
test("no file imports itself by way of others", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
    if (done.has(file) || path.includes(file)) return;
    if (sources.includes(file)) for (const next of importsOf(file)) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of sources.filter((name) => !isTest(name))) visit(file, []);
  assert.deepEqual(circles, []);
});

/** A folder with more files than this is several rooms in one. */
const FILES_MAX = 50;

test(`no folder holds more than ${FILES_MAX} files`, () => {
  const counts = new Map<string, number>();
  for (const file of globSync(["src/**/*.ts", "test/**/*.ts", "bench/**/*.ts", "console/**/*"]))
    counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  assert.deepEqual(
    [...counts].filter(([, files]) => files > FILES_MAX),
    [],
  );
});

test(`no file is longer than ${LINES_MAX} lines`, () => {
  const files = [...sources, ...globSync(["test/**/*.ts", "bench/**/*.ts", "scripts/**/*.ts"])];
  const long = files
    .map((file) => ({ file, lines: readFileSync(file, "utf8").split("\n").length }))
    .filter(({ lines }) => lines > LINES_MAX);
  assert.deepEqual(long, []);
});

/** Two places may say the same in a few lines; a longer run is one thing written twice. */
const SHARED_LINES_MAX = 14;

test(`no run of more than ${SHARED_LINES_MAX} lines stands in two places`, () => {
  const seen = new Map<string, string>();
  const twice: string[] = [];
  for (const file of sources.filter((name) => !isTest(name))) {
    const lines = meaningfulLines(readFileSync(file, "utf8"));
    for (let at = 0; at + SHARED_LINES_MAX < lines.length; at += 1) {
      const run = lines
        .slice(at, at + SHARED_LINES_MAX + 1)
        .map(({ text }) => text)
        .join("\n");
      const before = seen.get(run);
      const place = `${file}:${lines[at]?.number}`;
      if (before && !twice.some((pair) => pair.includes(file))) twice.push(`${before} and ${place}`);
      seen.set(run, place);
    }
  }
  assert.deepEqual(twice, []);
});

/** Comments, imports and lone brackets are nobody's logic. */
function meaningfulLines(source: string): { text: string; number: number }[] {
  return source
    .split("\n")
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter(({ text }) => /[a-zA-Z]{2}/.test(text) && !/^(\/\/|\/?\*|import |export \{|\} from )/.test(text));
}

test("generated files are fresh", () => {
  const check = spawnSync(process.execPath, ["scripts/generate.ts", "--check"], { encoding: "utf8" });
  assert.equal(check.status, 0, check.stderr);
});

test("the environment is read in one place", () => {
  const readers = sources.filter(
    (file) =>
      !isTest(file) &&
      /process\.env\b/.test(readFileSync(file, "utf8")) &&
      !/^src\/(config\.ts|sandboxd\/|cli\/)/.test(file),
  );
  assert.deepEqual(readers, []);
});
