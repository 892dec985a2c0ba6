/**
 * Searching with a regular expression. A hostile or unlucky expression can take for ever on one line, so the search
 * runs in a process of its own, which is killed when its time is up. The daemon itself never evaluates the expression.
 */

import { selfArgv, spawn } from "../bun.ts";
import { ApiError } from "../http/api-error.ts";

export interface GrepRequest {
  root: string;
  query: string;
  caseSensitive: boolean;
  include: string;
  exclude: string;
}

const TIME_MAX_MS = 20_000;
const QUERY_CHARS_MAX = 1000;
const OUTPUT_CHARS_MAX = 256 * 1024;

export async function grep(request: GrepRequest, signal: AbortSignal): Promise<{ results: string; total: number }> {
  if (request.query.length > QUERY_CHARS_MAX)
    throw new ApiError(400, `The expression has more than ${QUERY_CHARS_MAX} characters.`);
  try {
    new RegExp(request.query);
  } catch (error) {
    throw new ApiError(400, error instanceof Error ? error.message : String(error));
  }
  const child = spawn([...selfArgv(), "grep"], {
    stdio: ["ignore", "pipe", "ignore"],
    // Without the daemon's memory-saving runtime options, which would slow the search down.
    env: { PATH: process.env.PATH, SANDBOXD_GREP: JSON.stringify(request) },
  });
  const kill = (): void => child.kill("SIGKILL");
  const timer = setTimeout(kill, TIME_MAX_MS);
  signal.addEventListener("abort", kill);
  try {
    const text = (await new Response(child.stdout).text()).slice(0, OUTPUT_CHARS_MAX);
    const code = await child.exited;
    if (code !== 0)
      throw new ApiError(422, `The search was ended after ${TIME_MAX_MS / 1000} seconds; use a simpler expression.`);
    return { results: text, total: text === "" ? 0 : text.trimEnd().split("\n").length };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", kill);
  }
}
