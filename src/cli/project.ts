/** A code folder as `berth deploy` sees it: the resources, one or several, that its deploy file describes. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { parse as parseToml } from "smol-toml";
import { parseDurationMs } from "../lib/time/duration.ts";
import { UsageError } from "../lib/usage-error.ts";
import { interpolate, type Variables } from "./interpolate.ts";
import { isObject } from "./json-path.ts";

export interface Project {
  name: string;
  kind: string;
  /** The folder with the code. */
  dir: string;
  workspace: string | null;
  /** Run this image instead of code. */
  image: string | null;
  spec: Record<string, unknown>;
}

export interface ProjectOptions {
  /** Variables for [env] and for the workload itself. */
  variables: Variables;
  /** Variables given for this deployment. */
  envs: readonly Env[];
  /** The platform's own name, if it differs. */
  brand: string | undefined;
}

export interface Env {
  name: string;
  value: string;
  secret?: true;
}

type Table = Record<string, unknown>;

/** Aliases of kinds. */
const KINDS: Record<string, string> = { volumetemplate: "volume-template", vt: "volume-template" };
const NESTED = ["agent", "function", "job"] as const;
/** Keys copied to the specification unchanged. */
const COPIED = [
  "triggers",
  "volumes",
  "drives",
  "policies",
  "region",
  "public",
  "revision",
  "githubRunner",
  "integrationConnections",
  "agents",
  "functions",
];
/** Keys for other tools, or read elsewhere. */
const UNDERSTOOD = [
  ...COPIED,
  ...NESTED,
  ...["name", "workspace", "type", "protocol", "models", "entrypoint", "env", "skipRoot"],
  ...["runtime", "defaultSize", "directory", "image", "memory", "port", "build"],
];
/** Credentials of the user who deploys, which are not passed to the workload. */
const NEVER_SENT = new Set(["BL_API_KEY", "BERTH_API_KEY"]);

export const deployFiles = (brand: string | undefined): string[] => [
  ...new Set([...(brand ? [`${brand}.toml`] : []), "berth.toml", "service.toml"]),
];

/** Nested projects first, the folder's own last, unless the file says that it is none. */
export function readProjects(dir: string, options: ProjectOptions): Project[] {
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${dir} is not a folder.`);
  const { file, table } = readDeployFile(dir, options.brand);
  const unknown = Object.keys(table).find((key) => !UNDERSTOOD.includes(key));
  if (unknown !== undefined)
    throw new UsageError(`${file}: there is no key '${unknown}'.`, `known: ${[...UNDERSTOOD].sort().join(", ")}`);
  const nested = NESTED.flatMap((kind) =>
    Object.entries(isObject(table[kind]) ? table[kind] : {}).map(([name, value]) => {
      const { path, port, type } = (isObject(value) ? value : {}) as Table;
      if (typeof path !== "string") throw new UsageError(`${file}: [${kind}.${name}] has no path.`);
      const below = join(dir, path);
      if (!statSync(below, { throwIfNoEntry: false })?.isDirectory())
        throw new UsageError(`${file}: [${kind}.${name}] names ${path}, which is not a folder.`);
      const own = readDeployFile(below, options.brand).table;
      const runtime = { ...(isObject(own.runtime) ? own.runtime : {}), ...(port === undefined ? {} : { port }) };
      return projectFrom({ type: type ?? kind, ...own, name, runtime }, below, options);
    }),
  );
  return table.skipRoot === true ? nested : [...nested, projectFrom(table, dir, options)];
}

function readDeployFile(dir: string, brand: string | undefined): { file: string; table: Table } {
  const file = deployFiles(brand)
    .map((name) => join(dir, name))
    .find((path) => existsSync(path));
  if (file === undefined) return { file: dir, table: {} };
  try {
    return { file, table: parseToml(readFileSync(file, "utf8")) };
  } catch (error) {
    throw new UsageError(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The start command of `berth dev`, where the deploy file names one of its own. */
export function devLineOf(dir: string, brand: string | undefined): string | null {
  const { entrypoint } = readDeployFile(dir, brand).table;
  return isObject(entrypoint) && typeof entrypoint.dev === "string" ? entrypoint.dev : null;
}

function projectFrom(table: Table, dir: string, options: ProjectOptions): Project {
  const type = typeof table.type === "string" ? table.type : "agent";
  const kind = KINDS[type] ?? type;
  const image = typeof table.image === "string" ? table.image : null;
  const envs = envsOf(table, dir, options);
  const { timeout, ...free } = (isObject(table.runtime) ? table.runtime : {}) as Table;
  const seconds = timeout === undefined ? null : parseDurationMs(timeout as string | number);
  if (timeout !== undefined && seconds === null)
    throw new UsageError(`runtime.timeout is not a duration: ${timeout}.`, "write it in seconds, or as 30s, 15m, 2h");
  const runtime: Table = {
    ...free,
    ...(seconds === null ? {} : { timeout: seconds / 1000 }),
    ...(envs.length > 0 ? { envs } : {}),
    ...(image === null ? {} : { image }),
  };
  const copied = Object.fromEntries(COPIED.flatMap((key) => (table[key] === undefined ? [] : [[key, table[key]]])));
  const flat = Object.fromEntries(
    ["memory", "port"].flatMap((key) => (table[key] === undefined ? [] : [[key, table[key]]])),
  );
  const { memory } = flat;
  const base = {
    name: typeof table.name === "string" ? table.name : basename(resolve(dir)),
    kind,
    workspace: typeof table.workspace === "string" ? table.workspace : null,
  };
  if (kind === "volume-template") {
    const files = join(dir, typeof table.directory === "string" ? table.directory : ".");
    if (!statSync(files, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${files} is not a folder.`);
    const { defaultSize } = table;
    return { ...base, dir: files, image: null, spec: defaultSize === undefined ? {} : { defaultSize } };
  }
  return {
    ...base,
    dir,
    image,
    spec:
      kind === "application"
        ? { ...copied, ...runtime, ...flat }
        : { ...copied, runtime: { ...(memory === undefined ? {} : { memory }), ...runtime } },
  };
}

/**
 * The folder's .env, then the variables given for this deployment, then [env]; the later wins. People keep secrets in
 * .env, so its values are sent as secrets.
 */
function envsOf(table: Table, dir: string, { variables, envs }: ProjectOptions): Env[] {
  const file = join(dir, ".env");
  const own = existsSync(file) ? Object.entries(parseEnv(readFileSync(file, "utf8"))) : [];
  const declared = Object.entries(isObject(table.env) ? table.env : {});
  const all: Env[] = [
    ...own.map(([name, value]) => ({ name, value: value ?? "", secret: true as const })),
    ...envs,
    ...declared.map(([name, value]) => ({ name, value: interpolate(String(value), variables) })),
  ];
  return [...new Map(all.map((env) => [env.name, env])).values()].filter(({ name }) => !NEVER_SENT.has(name));
}
