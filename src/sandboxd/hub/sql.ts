/**
 * The MCP server for one database: a SQLite file, or PostgreSQL at an address. Every statement runs in a process of its
 * own, so that a statement that never ends or exhausts its memory harms no other.
 */
import type { McpServer } from "../../lib/mcp/server.ts";
import { list, type Tool, text as word } from "../../lib/mcp/tool.ts";
import { selfArgv, spawn } from "../bun.ts";
import { ApiError, toApiError } from "../http/api-error.ts";
import { VERSION } from "../version.ts";

export type DatabaseAddress = { file: string } | { url: string };

export interface SqlRequest {
  database: DatabaseAddress;
  sql: string;
  params: unknown[];
  readOnly: boolean;
}

export type SqlReply = { columns: string[]; rows: unknown[]; changes?: number; truncated: boolean } | { error: string };

/** The child reads its request from this variable: arguments are visible to every user of the machine. */
export const SQL_REQUEST_VARIABLE = "SANDBOXD_SQL";
const STATEMENT_MS = 30_000;
/** Largest request: the kernel limits one environment variable to 128 KB. */
const REQUEST_BYTES_MAX = 120_000;

const statement = {
  sql: word("One statement; values are written as ? in SQLite and as $1 in PostgreSQL"),
  params: list("Values for them", { items: { type: "string" } }),
};

const TABLES = {
  file: "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name",
  url: "SELECT table_schema || '.' || table_name AS name, table_type AS type FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
};
const COLUMNS = {
  file: 'SELECT name, type, "notnull", dflt_value AS "default", pk FROM pragma_table_info(?)',
  url: "SELECT column_name AS name, data_type AS type, is_nullable AS nullable, column_default AS default FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
};
const dialectOf = (database: DatabaseAddress): "file" | "url" => ("file" in database ? "file" : "url");

const TOOLS: Tool<DatabaseAddress>[] = [
  {
    name: "query",
    description: "Run a statement that only reads; answers with at most 1000 rows.",
    properties: statement,
    required: ["sql"],
    run: (database, args, signal) => run({ database, ...asked(args), readOnly: true }, signal),
  },
  {
    name: "execute",
    description: "Run a statement that changes data or tables.",
    properties: statement,
    required: ["sql"],
    run: (database, args, signal) => run({ database, ...asked(args), readOnly: false }, signal),
  },
  {
    name: "listTables",
    description: "List the tables and views.",
    properties: {},
    required: [],
    run: (database, _args, signal) =>
      run({ database, sql: TABLES[dialectOf(database)], params: [], readOnly: true }, signal),
  },
  {
    name: "describeTable",
    description: "List the columns of a table.",
    properties: { table: word("Its name") },
    required: ["table"],
    run: (database, args, signal) =>
      run({ database, sql: COLUMNS[dialectOf(database)], params: [args.table], readOnly: true }, signal),
  },
];

export const SQL_SERVER: McpServer<DatabaseAddress> = {
  info: { name: "sql", version: VERSION },
  instructions: "Tools for one SQL database.",
  tools: () => TOOLS,
  explain: (error) => toApiError(error).message,
};

const asked = ({ sql, params = [] }: Record<string, unknown>): { sql: string; params: unknown[] } => ({
  sql: String(sql),
  params: params as unknown[],
});

async function run(request: SqlRequest, signal: AbortSignal): Promise<Record<string, unknown>> {
  const text = JSON.stringify(request);
  if (Buffer.byteLength(text) > REQUEST_BYTES_MAX)
    throw new ApiError(413, `A statement and its values have at most ${REQUEST_BYTES_MAX} bytes.`);
  const child = spawn([...selfArgv(), "sql"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, [SQL_REQUEST_VARIABLE]: text },
  });
  const limit = AbortSignal.any([signal, AbortSignal.timeout(STATEMENT_MS)]);
  const kill = (): void => child.kill("SIGKILL");
  limit.addEventListener("abort", kill, { once: true });
  try {
    const output = await new Response(child.stdout).text();
    await child.exited;
    if (limit.aborted) throw new ApiError(408, `The statement took longer than ${STATEMENT_MS / 1000} s.`);
    if (output === "") throw new ApiError(500, "The statement ended without an answer: it may need too much memory.");
    const reply = JSON.parse(output) as SqlReply;
    if ("error" in reply) throw new ApiError(400, reply.error);
    return reply;
  } finally {
    limit.removeEventListener("abort", kill);
  }
}
