/** A request as other tools make it: curl, the command line, and the SDK. */
import type { KindFacts } from "../lib/facts.ts";
import { settings } from "../lib/settings.ts";

export interface Asked {
  method: string;
  /** Below `/v0`. */
  path: string;
  workspace: string;
  body?: unknown;
  /** The operation, as the SDK names it. */
  operation: string;
  /** Path parameters in order. */
  names: readonly string[];
  /** The same on the command line; null where it has no short form. */
  command: string | null;
}

export interface Line {
  title: string;
  text: string;
}

export function linesOf({ method, path, workspace, body, operation, names, command }: Asked): Line[] {
  const data =
    body === undefined ? "" : ` \\\n  -H 'content-type: application/json' \\\n  -d ${quoted(JSON.stringify(body))}`;
  const verb = method === "GET" ? "" : ` -X ${method}`;
  const given = [...names.map((name) => JSON.stringify(name)), ...(body === undefined ? [] : [JSON.stringify(body)])];
  return [
    {
      title: "curl",
      text: `curl${verb} ${settings.publicUrl}/v0${path} \\\n  -H "authorization: Bearer $BERTH_API_KEY" \\\n  -H 'x-service-workspace: ${workspace}'${data}`,
    },
    ...(command === null ? [] : [{ title: "CLI", text: command }]),
    { title: "SDK", text: `await berth.api.${operation}(${given.join(", ")});` },
  ];
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const listCommand = ({ name }: KindFacts, workspace: string): string => `berth ${name} list -w ${workspace}`;
export const getCommand = ({ name: kind }: KindFacts, name: string, workspace: string): string =>
  `berth ${kind} get ${name} -w ${workspace}`;

/** How the first resource of a kind is made at a terminal. */
const FIRST: Readonly<Record<string, string>> = {
  sandbox: "berth run sandbox",
  agent: "berth new agent my-agent && cd my-agent && berth deploy",
  function: "berth new mcp my-server && cd my-server && berth deploy",
  job: "berth new job my-job && cd my-job && berth deploy",
};

export const firstCommand = ({ name }: KindFacts, workspace: string): string =>
  FIRST[name] ?? `berth ${name} create my-${name} -w ${workspace}`;
