/**
 * Runs the official conformance suite against an MCP server at a URL, at the wire of one revision of the protocol, and
 * says which scenarios fail. The suite knows no credentials, so it goes through a relay that adds them and nothing else.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";

export const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
export type Revision = (typeof REVISIONS)[number];

const PACKAGE = resolve("node_modules/@modelcontextprotocol/conformance");
const CLI = join(PACKAGE, "dist/index.js");
const run = promisify(execFile);

export interface Failure {
  check: string;
  why: string;
}

interface Check {
  id: string;
  status: string;
  errorMessage?: string;
}

/** Every scenario of a revision that ran, with what failed in it. */
export async function conformance(url: string, revision: Revision): Promise<Map<string, Failure[]>> {
  const folder = mkdtempSync(join(tmpdir(), "conformance-"));
  try {
    const args = [CLI, "server", "--url", url, "--requirements", revision, "-o", folder];
    // It ends with 1 when something failed: what that was is in the files.
    const said = await run(process.execPath, args).catch((error: { stderr: string }) => error);
    const found = new Map<string, Failure[]>();
    for (const name of readdirSync(folder)) {
      const scenario = name.replace(/^server-(.*)-\d{4}-\d{2}-\d{2}T.*$/, "$1");
      const checks = JSON.parse(readFileSync(join(folder, name, "checks.json"), "utf8")) as Check[];
      const failed = checks.filter(({ status }) => status === "FAILURE");
      found.set(
        scenario,
        failed.map(({ id, errorMessage = "" }) => ({ check: id, why: errorMessage })),
      );
    }
    if (found.size === 0) throw new Error(`The suite did not run: ${said.stderr}`);
    return found;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Requirements {
  server: string[];
  not_scored: { scenario: string; leg: string }[];
}

/** What the suite runs for a revision, as it says itself. */
export function scenariosOf(revision: Revision): string[] {
  const file = readFileSync(join(PACKAGE, "requirements", `${revision}.yaml`), "utf8");
  const { server, not_scored } = parse(file) as Requirements;
  return [...server, ...not_scored.filter(({ leg }) => leg === "server").map(({ scenario }) => scenario)];
}

export async function allScenarios(): Promise<string[]> {
  const { stdout } = await run(process.execPath, [CLI, "list", "--server"]);
  return [...stdout.matchAll(/^ {2}- (\S+)/gm)].map(([, name = ""]) => name);
}

export interface Relay extends AsyncDisposable {
  url: string;
}

/** A door on loopback to a server elsewhere, byte for byte, with a credential. */
export async function relayTo(target: URL | { socketPath: string; path: string }, key?: string): Promise<Relay> {
  const place: RequestOptions =
    target instanceof URL ? { host: target.hostname, port: target.port, path: target.pathname } : target;
  const server = createServer((req, res) => {
    const headers = [...req.rawHeaders, ...(key === undefined ? [] : ["X-Service-Authorization", `Bearer ${key}`])];
    const up = httpRequest({ ...place, method: req.method ?? "GET", headers }, (answer: IncomingMessage) => {
      res.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      res.flushHeaders();
      answer.on("error", () => res.destroy()).pipe(res);
    });
    up.on("error", () => res.destroy());
    res.on("close", () => up.destroy());
    req.pipe(up);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
