/** A request as other tools make it: curl, the command line, and the SDK. */
import type { KindFacts } from "../lib/facts.ts";

export interface Asked {
  method: string;
  /** Below `/v0`. */
  path: string;
  workspace: string;
  query?: Readonly<Record<string, string>>;
  body?: unknown;
  /** The operation, as the SDK names it. */
  operation: string;
  /** Path parameters by name. */
  params: Readonly<Record<string, string>>;
  /** The same on the command line; null where it has no short form. */
  command: string | null;
}

export interface Line {
  title: string;
  text: string;
}

export function linesOf(
  publicUrl: string,
  { method, path, workspace, query, body, operation, params, command }: Asked,
): Line[] {
  const address = `${publicUrl}/v0${path}`;
  const asked = query === undefined ? address : quoted(`${address}?${new URLSearchParams(query)}`);
  const data =
    body === undefined ? "" : ` \\\n  -H 'content-type: application/json' \\\n  -d ${quoted(JSON.stringify(body))}`;
  const verb = method === "GET" ? "" : ` -X ${method}`;
  const input = {
    ...(Object.keys(params).length === 0 ? {} : { params }),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
  };
  return [
    {
      title: "curl",
      text: `curl -s${verb} ${asked} \\\n  -H "authorization: Bearer $BERTH_API_KEY" \\\n  -H 'x-service-workspace: ${workspace}'${data}`,
    },
    ...(command === null ? [] : [{ title: "CLI", text: command }]),
    {
      title: "SDK",
      text: `await berth.api.${operation}(${Object.keys(input).length === 0 ? "" : JSON.stringify(input)});`,
    },
  ];
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** A request to a workload at its own address. */
export function callLine(
  address: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): string {
  return [
    `curl -s -X ${method} ${quoted(address)}`,
    `-H "authorization: Bearer $BERTH_API_KEY"`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === "" ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(" \\\n  ");
}

/** A request that reads something which is no kind of resource. */
export const readRequest = (
  workspace: string,
  operation: string,
  path: string,
  command: string | null,
  query: Readonly<Record<string, string>> = {},
  params: Readonly<Record<string, string>> = {},
): Asked => {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  return {
    ...{ method: "GET", path, workspace, operation, params },
    ...(given.length === 0 ? {} : { query: Object.fromEntries(given) }),
    command: command === null ? null : `berth ${command} -w ${workspace}`,
  };
};

export const workspaceRequest = (workspace: string): Asked => ({
  ...{ method: "GET", path: `/workspaces/${workspace}`, workspace, operation: "workspaceGet" },
  ...{ params: { workspaceName: workspace }, command: `berth workspace get ${workspace}` },
});

/** A word that a shell leaves as it is. */
const PLAIN_WORD = /^[\w.:@/-]+$/;
const words = (parts: readonly string[]): string => {
  const joined = parts.join("/");
  return PLAIN_WORD.test(joined) ? joined : quoted(joined);
};

/** Resources that are parts of others are listed and named below them: `berth preview get box/web`. */
export const listCommand = ({ name }: KindFacts, parents: readonly string[], workspace: string): string =>
  `berth ${name} list ${parents.length === 0 ? "" : `${words(parents)} `}-w ${workspace}`;
export const getCommand = (
  { name: kind }: KindFacts,
  parents: readonly string[],
  name: string,
  workspace: string,
): string => `berth ${kind} get ${words([...parents, name])} -w ${workspace}`;

/** The command line reads what a form or a text says from its input. */
export const createCommand = (
  { name: kind }: KindFacts,
  parents: readonly string[],
  body: unknown,
  workspace: string,
): string => {
  const place = parents.length === 0 ? "" : ` ${words([...parents, ""])}`;
  return `echo ${quoted(JSON.stringify(body))} | berth ${kind} create${place} -f - -w ${workspace}`;
};

/** Members that a resource of the kind cannot do without. */
const NEEDED: Readonly<Record<string, string>> = {
  model: " --set spec.runtime.type=mock",
  volume: " --set spec.size=64",
  integrationconnection: " --set spec.integration=openai --set spec.secret.apiKey=$OPENAI_API_KEY",
  application: " --set spec.runtime.image=IMAGE",
  policy: " --file policy.yaml",
};

/** Code is deployed from a folder, which a template begins. */
const TEMPLATES: Readonly<Record<string, string>> = { agent: "agent-echo", function: "mcp-hello", job: "job-batch" };

const NAMES: Readonly<Record<string, string>> = { customdomain: "example.com" };

/** How the first resource of a kind is made at a terminal. */
export function firstCommand({ name: kind }: KindFacts, workspace: string): string {
  const template = TEMPLATES[kind];
  if (template !== undefined) return `berth new ${template} && berth deploy ${template} -w ${workspace}`;
  return `berth ${kind} create ${NAMES[kind] ?? `my-${kind}`} -w ${workspace}${NEEDED[kind] ?? ""}`;
}
