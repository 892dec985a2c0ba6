/** The servers of the hub that work on files and databases, as programs, spoken to by the official client. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { testDatabases } from "../../../test/databases.ts";
import { connectMcp } from "../../../test/mcp-suite.ts";
import { skip } from "../../../test/sandboxd-harness.ts";
import { findBun } from "../../lib/bun-program.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-hub-"));
const databases = await testDatabases();
after(async () => {
  rmSync(folder, { recursive: true });
  await databases.stop();
});

/** The members of the tools' answers that tests look into. */
interface Answer {
  entries: { name: string; type: string }[];
  matches: { path: string }[];
  rows: Record<string, unknown>[];
  columns: unknown;
  truncated: boolean;
  changes: number;
}

interface Program extends AsyncDisposable {
  use(tool: string, args?: Record<string, unknown>): Promise<Answer>;
  /** The sentence with which the tool fails. */
  refusal(tool: string, args?: Record<string, unknown>): Promise<string>;
}

async function start(argv: string[], env: Record<string, string> = {}): Promise<Program> {
  const child = spawn(findBun() ?? "", ["src/sandboxd/main.ts", ...argv], {
    env: { ...process.env, HOST: "127.0.0.1", PORT: "0", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { client, [Symbol.asyncDispose]: close } = await connectMcp(new URL(`${await listening(child)}/mcp`), {});
  const textOf = async (name: string, args: Record<string, unknown>, isRefused: boolean): Promise<string> => {
    const answer = await client.callTool({ name, arguments: args });
    const [{ text = "" } = {}] = answer.content as { text?: string }[];
    assert.equal(answer.isError === true, isRefused, text);
    return text;
  };
  return {
    use: async (name, args = {}) => JSON.parse(await textOf(name, args, false)),
    refusal: (name, args = {}) => textOf(name, args, true),
    async [Symbol.asyncDispose]() {
      await close();
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

async function listening(child: ChildProcess): Promise<string> {
  for await (const text of child.stdout ?? []) {
    const url = /listening on (http:\S+)/.exec(String(text))?.[1];
    if (url) return url;
  }
  throw new Error("it did not start");
}

test("files of one folder, and nothing outside of it", { skip }, async () => {
  const root = join(folder, "files");
  mkdirSync(root);
  writeFileSync(join(folder, "secret.txt"), "not yours");
  symlinkSync(folder, join(root, "up"));
  await using server = await start(["mcp-files", root]);
  assert.deepEqual(await server.use("writeFile", { path: "notes/a.txt", content: "one two two" }), {
    path: "notes/a.txt",
    bytes: 11,
  });
  assert.deepEqual(await server.use("readFile", { path: "notes/a.txt" }), { content: "one two two" });
  assert.deepEqual(await server.use("readFile", { path: join(root, "notes/a.txt") }), { content: "one two two" });
  assert.match(
    await server.refusal("editFile", { path: "notes/a.txt", oldText: "two", newText: "2" }),
    /occurs 2 times/,
  );
  assert.match(await server.refusal("editFile", { path: "notes/a.txt", oldText: "x", newText: "2" }), /does not occur/);
  await server.use("editFile", { path: "notes/a.txt", oldText: "two", newText: "$&", replaceAll: true });
  assert.equal(readFileSync(join(root, "notes/a.txt"), "utf8"), "one $& $&");
  await server.use("moveFile", { from: "notes/a.txt", to: "b/c.txt" });
  const { entries } = await server.use("listDirectory");
  assert.deepEqual(
    entries.map(({ name, type }) => `${name} ${type}`),
    ["b folder", "notes folder", "up other"],
  );
  assert.deepEqual((await server.use("searchFiles", { query: "C.TXT" })).matches, [{ path: "b/c.txt" }]);
  const found = await server.use("searchFiles", { query: "ONE", content: true });
  assert.deepEqual(found.matches, [{ path: "b/c.txt", line: 1, text: "one $& $&" }]);
  for (const path of ["../secret.txt", "/../secret.txt", "up/secret.txt", "up/new.txt", `${root}-x`, "up"])
    assert.match(await server.refusal("readFile", { path }), /outside of the folder|no such file/, path);
  assert.match(await server.refusal("writeFile", { path: "up/new.txt", content: "x" }), /outside of the folder/);
  assert.match(await server.refusal("deleteFile", { path: "." }), /stays/);
  await server.use("deleteFile", { path: "b", recursive: true });
  assert.match(await server.refusal("readFile", { path: "b/c.txt" }), /no such file/);
});

interface Dialect {
  name: string;
  skip: string | false;
  /** How the second value of a statement is written. */
  values: string;
  start(): Promise<Program>;
}

const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();
const DIALECTS: Dialect[] = [
  { name: "SQLite", skip, values: "?, ?", start: () => start(["mcp-sql", join(folder, "data.sqlite")]) },
  {
    name: "PostgreSQL",
    skip: skip || postgres.skip,
    values: "$1, $2",
    start: async () => start(["mcp-sql"], { POSTGRES_URL: (await postgres.fresh()).databaseUrl ?? "" }),
  },
];

for (const dialect of DIALECTS)
  describe(`SQL in ${dialect.name}`, { skip: dialect.skip }, () => {
    let server: Program;
    before(async () => {
      server = await dialect.start();
    });
    after(() => server[Symbol.asyncDispose]());

    test("tables are made, filled, described and read", async () => {
      await server.use("execute", { sql: "CREATE TABLE people (name TEXT NOT NULL, age INTEGER)" });
      const insert = { sql: `INSERT INTO people VALUES (${dialect.values})`, params: ["Ada", "36"] };
      assert.equal((await server.use("execute", insert)).changes, 1);
      const { rows, columns, truncated } = await server.use("query", { sql: "SELECT name, age FROM people" });
      assert.deepEqual([rows, columns, truncated], [[{ name: "Ada", age: 36 }], ["name", "age"], false]);
      assert.match(JSON.stringify(await server.use("listTables")), /people/);
      assert.match(JSON.stringify(await server.use("describeTable", { table: "people" })), /age/);
    });

    test("a query only reads, and mistakes are told", async () => {
      assert.match(await server.refusal("query", { sql: "DELETE FROM people" }), /read-?only/i);
      assert.match(await server.refusal("query", { sql: "SELEC 1" }), /syntax/i);
      assert.match(await server.refusal("query", { sql: `SELECT '${"x".repeat(130_000)}'` }), /at most/);
      const many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i FROM n";
      const { rows, truncated } = await server.use("query", { sql: many });
      assert.deepEqual([rows.length, truncated], [1000, true]);
    });
  });
