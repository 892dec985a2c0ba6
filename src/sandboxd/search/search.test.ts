import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { skip, startSandboxd } from "../../../test/sandboxd-harness.ts";
import { fuzzyScore } from "./fuzzy-score.ts";
import { nameMatcher, splitPatterns } from "./glob.ts";

test("patterns", () => {
  const cases: [string, string, boolean][] = [
    ["*.ts", "a.ts", true],
    ["*.ts", "a.tsx", false],
    ["*", "", true],
    ["?", "ü", true],
    ["a?c", "abc", true],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["[^a-c]x", "dx", true],
    ["*.{ts,js}", "a.js", true],
    ["{a,b{c,d}}", "bd", true],
    ["[", "[", true],
    ["\\*", "*", true],
    ["\\*", "x", false],
    ["a*b*c", "a--b--c", true],
    ["a*b*c", "a--c--b", false],
  ];
  for (const [pattern, name, expected] of cases)
    assert.equal(nameMatcher([pattern])(name), expected, `${pattern} ${name}`);
  assert.ok(nameMatcher([])("anything"));
  assert.deepEqual(splitPatterns("*.{a,b}, c ,"), ["*.{a,b}", "c"]);
  // Many stars against a long name: quadratic at worst, where backtracking would take for ever.
  assert.equal(nameMatcher([`${"*a".repeat(100)}b`])("a".repeat(5000)), false);
  assert.equal(nameMatcher(["{".repeat(200) + "a,".repeat(200)])("x"), false);
});

test("likeness", () => {
  assert.equal(fuzzyScore("xyz", "src/main.ts"), null);
  const score = (query: string, path: string): number => fuzzyScore(query, path) ?? -1;
  assert.ok(score("main", "src/main.ts") > score("main", "src/my-admin.txt"));
  assert.ok(score("main.ts", "src/main.ts") > score("main.ts", "src/main.test.ts"));
  assert.ok(score("pt", "src/processTable.ts") > score("pt", "src/output.ts"));
});

test("searching files", { skip }, async (t) => {
  await using d = await startSandboxd();
  const put = (name: string, content = ""): void => {
    mkdirSync(dirname(join(d.workDir, name)), { recursive: true });
    writeFileSync(join(d.workDir, name), content);
  };
  put("src/main.ts", "import x\nconst Needle = 1;\n  needle twice needle\n");
  put("src/deep/er/util.js", "no match here\r\nNEEDLE\r\n");
  put("README.md", "about a needle");
  put(".hidden/needle.txt", "needle");
  put("node_modules/pkg/index.js", "needle");
  put("bin/blob", "needle\0needle");
  symlinkSync("..", join(d.workDir, "src/loop"));
  execFileSync("mkfifo", [join(d.workDir, "src/fifo")]);
  const paths = (json: { matches: { path: string }[] }): string[] => json.matches.map((match) => match.path).sort();

  await t.test("find by name", async () => {
    const find = async (query: string) => (await d.ask("GET", `/filesystem-find/?${query}`)).json;
    assert.deepEqual(paths(await find("")), [
      "README.md",
      "bin/blob",
      "src/deep/er/util.js",
      "src/loop",
      "src/main.ts",
    ]);
    assert.deepEqual(paths(await find("patterns=*.ts,*.md")), ["README.md", "src/main.ts"]);
    assert.deepEqual(paths(await find("type=directory")), ["bin", "src", "src/deep", "src/deep/er"]);
    assert.deepEqual(paths(await find("excludeHidden=false&patterns=*.txt")), [".hidden/needle.txt"]);
    assert.deepEqual(paths(await find("excludeDirs=src")), ["README.md", "bin/blob", "node_modules/pkg/index.js"]);
    assert.equal((await find("maxResults=2")).matches.length, 2);
    assert.deepEqual(await find("patterns=*.none"), { matches: [], total: 0 });
    const { json } = await d.ask("GET", `/filesystem-find/${encodeURIComponent(join(d.workDir, "src"))}?maxResults=0`);
    assert.deepEqual([json.total, json.matches[0]], [3, { path: "loop", type: "file" }]);
  });

  await t.test("find refuses", async () => {
    assert.equal((await d.ask("GET", "/filesystem-find/?type=socket")).status, 400);
    assert.equal((await d.ask("GET", "/filesystem-find/?maxResults=many")).status, 400);
    assert.equal((await d.ask("GET", "/filesystem-find/none")).status, 422);
    assert.equal((await d.ask("GET", "/filesystem-find/README.md")).status, 422);
  });

  await t.test("search by likeness, with a query or with the path as one", async () => {
    const { json } = await d.ask("GET", "/filesystem-search/?query=mn.ts");
    assert.deepEqual(
      [json.matches[0].path, json.matches[0].type, typeof json.matches[0].score],
      ["src/main.ts", "file", "number"],
    );
    assert.equal((await d.ask("GET", "/filesystem-search/src/utl")).json.matches[0].path, "deep/er/util.js");
    assert.deepEqual((await d.ask("GET", "/filesystem-search/?query=zzzz")).json, { matches: [], total: 0 });
  });

  await t.test("search in contents", async () => {
    const grep = async (query: string) => (await d.ask("GET", `/filesystem-content-search/?${query}`)).json;
    const all = await grep("query=needle");
    assert.equal(all.query, "needle");
    assert.deepEqual(
      all.matches.map(({ path, line, column }: { path: string; line: number; column: number }) => [path, line, column]),
      [
        ["README.md", 1, 9],
        [".hidden/needle.txt", 1, 1],
        ["src/main.ts", 2, 7],
        ["src/main.ts", 3, 3],
        ["src/deep/er/util.js", 2, 1],
      ].sort((a, b) => order(String(a[0])) - order(String(b[0]))),
    );
    assert.deepEqual(paths(await grep("query=Needle&caseSensitive=true")), ["src/main.ts"]);
    assert.deepEqual(paths(await grep("query=needle&filePattern=*.js")), ["src/deep/er/util.js"]);
    assert.equal((await grep("query=needle&maxResults=1")).total, 1);
    assert.equal((await grep("query=*needle*")).total, 0);
    assert.equal((await d.ask("GET", "/filesystem-content-search/")).status, 400);
    assert.equal((await d.ask("GET", "/filesystem-content-search/none?query=x")).status, 422);
    const one = await d.ask("GET", "/filesystem-content-search/README.md?query=about");
    assert.deepEqual(one.json.matches, [{ path: "README.md", line: 1, column: 1, text: "about a needle" }]);
  });

  await t.test("a match at the seam of two reads, and in a line without end", async () => {
    put("seam.txt", `${"x\n".repeat(131_070)}seamword\n${"y".repeat(3_000_000)}endword`);
    const seam = (await d.ask("GET", "/filesystem-content-search/?query=seamword")).json;
    assert.deepEqual([seam.matches[0].line, seam.matches[0].column], [131_071, 1]);
    const end = (await d.ask("GET", "/filesystem-content-search/?query=endword")).json;
    assert.equal(end.total, 1);
    assert.ok(end.matches[0].text.length <= 1000);
  });
});

/** The order of the walk: the shallower first, then by name. */
const order = (path: string): number =>
  ["README.md", ".hidden/needle.txt", "src/main.ts", "src/deep/er/util.js"].indexOf(path);
