/** Finds out from a folder's files how its code is built and started. */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parse as parseToml } from "smol-toml";
import { PlatformError } from "../../contract/errors.ts";

export interface BuildRecipe {
  /** Shell line that fetches dependencies and builds; null when nothing has to be done. */
  build: string | null;
  /** Shell line that starts the program. */
  start: string;
  /** Variables that only the build gets. */
  buildEnv: Record<string, string>;
  /** The code looks like an MCP server that uses standard input and output. */
  stdio?: boolean;
}

/** Folder of the code inside a workload. Python dependencies are in a folder below it. */
export const CODE_PATH = "/app";
export const PYTHON_PACKAGES = ".packages";
/** Variables of the build, one KEY=VALUE per line; the file is not part of the running code. */
export const BUILD_ENV_FILE = ".env.build";

/** Bytes of a project description that is read into memory. */
const DESCRIPTION_BYTES_MAX = 1024 * 1024;
const NODE_ENTRIES = ["index.js", "index.mjs", "index.ts", "src/index.js", "src/index.ts"];
const PYTHON_ENTRIES = ["main.py", "app.py", "src/main.py"];
const EXECUTABLES = ["main", "server", "app", "start"];

interface PackageJson {
  main?: unknown;
  scripts?: Record<string, unknown>;
  dependencies?: object;
  devDependencies?: object;
}

export async function recipeFor(folder: string, brand: string): Promise<BuildRecipe> {
  const recipe = await findRecipe(folder, brand);
  const stdio = await speaksStdio(folder, recipe.start);
  return { ...recipe, stdio, buildEnv: await buildEnvOf(folder, brand) };
}

export async function buildEnvOf(folder: string, brand: string): Promise<Record<string, string>> {
  const file = join(folder, BUILD_ENV_FILE);
  const { build } = await readDeployFile(folder, brand);
  const { args } = (build ?? {}) as { args?: Record<string, unknown> };
  return {
    ...((await isFile(file)) ? (parseEnv(await readText(file)) as Record<string, string>) : {}),
    ...Object.fromEntries(Object.entries(args ?? {}).map(([name, value]) => [name, String(value)])),
  };
}

/** Commands that start a published package; these are stdio MCP servers unless configured otherwise. */
const PACKAGE_RUNNER = /^(npx|bunx|uvx|pipx run)\s/;
const STDIO_WORDS = /\bStdioServerTransport\b|\bstdio_server\b|transport\s*=\s*["']stdio["']/;
const HTTP_WORDS = /streamable[-_]?http|\.listen\(|createServer\(/i;

/** A guess; the function's `transport` overrides it. */
async function speaksStdio(folder: string, start: string): Promise<boolean> {
  if (PACKAGE_RUNNER.test(start)) return true;
  const entry = /(?:^|\s)'?([\w./-]+\.(?:[cm]?[jt]s|py))'?(?:\s|$)/.exec(start)?.[1];
  if (entry === undefined || entry.split("/").includes("..") || !(await isFile(join(folder, entry)))) return false;
  const text = await readText(join(folder, entry)).catch(() => ""); // too large to be a server script
  return STDIO_WORDS.test(text) && !HTTP_WORDS.test(text);
}

type Lines = Pick<BuildRecipe, "build" | "start">;

async function findRecipe(folder: string, brand: string): Promise<Lines> {
  const names = new Set(await readdir(folder));
  const { entrypoint: commands } = await readDeployFile(folder, brand);
  const entrypoint = textOr((commands as { prod?: unknown } | undefined)?.prod);
  if (names.has("package.json")) return nodeRecipe(folder, names, entrypoint);
  if (names.has("requirements.txt") || names.has("pyproject.toml")) return pythonRecipe(folder, names, entrypoint);
  const start =
    entrypoint ?? (await nodeStart(folder)) ?? (await pythonStart(folder)) ?? (await executable(folder, names));
  if (start) return { build: null, start };
  throw new PlatformError("bad_request", whyNot(names, brand));
}

/** Files at the root of projects in languages that are not built here. */
const NOT_BUILT: Record<string, string> = {
  "go.mod": "Go",
  "Cargo.toml": "Rust",
  "pom.xml": "Java",
  "build.gradle": "Java",
  Gemfile: "Ruby",
  "composer.json": "PHP",
};

function whyNot(names: Set<string>, brand: string): string {
  const found = Object.keys(NOT_BUILT).find((name) => names.has(name));
  if (found !== undefined)
    return `${NOT_BUILT[found]} is not built here: send the finished program, and its start command as prod below [entrypoint].`;
  return `There is nothing to start: name a command as prod below [entrypoint] in ${brand}.toml, or add a Dockerfile, package.json, main.py or index.js.`;
}

async function nodeRecipe(folder: string, names: Set<string>, entrypoint: string | null): Promise<Lines> {
  const { main, scripts = {}, ...manifest } = await readPackageJson(folder);
  const start =
    entrypoint ??
    textOr(scripts.start) ??
    (typeof main === "string" && (await isFile(join(folder, main))) ? `node ${quoted(main)}` : null) ??
    (await nodeStart(folder));
  if (!start)
    throw new PlatformError("bad_request", "package.json has no start script, no main, and there is no index.js.");
  const builds = textOr(scripts.build) !== null;
  const needs = [manifest.dependencies, ...(builds ? [manifest.devDependencies] : [])];
  const lines = [
    ...(needs.some((each) => Object.keys(each ?? {}).length > 0) ? [installLine(names, builds)] : []),
    ...(builds ? ["npm run build"] : []),
  ];
  return { build: lines.length > 0 ? lines.join(" && ") : null, start };
}

/** Installs exactly the versions of a lock file; without one, the newest that fit. */
function installLine(names: Set<string>, withTools: boolean): string {
  if (names.has("pnpm-lock.yaml"))
    return fetched("pnpm", "10", `install --frozen-lockfile${withTools ? "" : " --prod"}`);
  if (names.has("yarn.lock"))
    return fetched("yarn", "1", `install --frozen-lockfile${withTools ? "" : " --production"}`);
  const verb = names.has("package-lock.json") || names.has("npm-shrinkwrap.json") ? "ci" : "install";
  return `npm ${verb} --no-audit --no-fund${withTools ? "" : " --omit=dev"}`;
}

/** Uses the image's own tool, otherwise the one from the registry. */
const fetched = (tool: string, version: string, line: string): string =>
  `if command -v ${tool} >/dev/null; then ${tool} ${line}; else npx --yes ${tool}@${version} ${line}; fi`;

async function pythonRecipe(folder: string, names: Set<string>, entrypoint: string | null): Promise<Lines> {
  const start = entrypoint ?? (await pythonStart(folder));
  if (!start) throw new PlatformError("bad_request", "There is no main.py or app.py, and no start command is named.");
  const what = names.has("requirements.txt") ? "-r requirements.txt" : ".";
  const empty = names.has("requirements.txt") && (await isBlank(join(folder, "requirements.txt")));
  return { build: empty ? null : pythonInstall(`--target ${PYTHON_PACKAGES} ${what}`), start };
}

const pythonInstall = (line: string): string =>
  `if command -v uv >/dev/null; then uv pip install ${line}; ` +
  `elif python3 -m pip --version >/dev/null 2>&1; then python3 -m pip install --no-cache-dir ${line}; ` +
  `else echo "There is neither uv nor pip to install what Python code needs." >&2; exit 1; fi`;

async function readDeployFile(folder: string, brand: string): Promise<Record<string, unknown>> {
  const file = await firstFile(folder, [`${brand}.toml`, "berth.toml", "service.toml"]);
  if (file === null) return {};
  try {
    return parseToml(await readText(join(folder, file)));
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    throw new PlatformError("bad_request", `${file} cannot be read as TOML.`, { cause: error });
  }
}

async function readPackageJson(folder: string): Promise<PackageJson> {
  const text = await readText(join(folder, "package.json"));
  try {
    return (JSON.parse(text) ?? {}) as PackageJson;
  } catch (error) {
    throw new PlatformError("bad_request", "package.json cannot be read as JSON.", { cause: error });
  }
}

async function readText(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > DESCRIPTION_BYTES_MAX)
    throw new PlatformError("bad_request", "A file that describes the project is too large.");
  return readFile(file, "utf8");
}

const nodeStart = async (folder: string): Promise<string | null> =>
  prefixed("node", await firstFile(folder, NODE_ENTRIES));
const pythonStart = async (folder: string): Promise<string | null> =>
  prefixed("python3", await firstFile(folder, PYTHON_ENTRIES));

async function executable(folder: string, names: Set<string>): Promise<string | null> {
  for (const name of EXECUTABLES.filter((each) => names.has(each))) {
    const found = await stat(join(folder, name));
    if (found.isFile() && (found.mode & 0o111) !== 0) return `./${name}`;
  }
  return null;
}

async function firstFile(folder: string, candidates: readonly string[]): Promise<string | null> {
  for (const name of candidates) if (await isFile(join(folder, name))) return name;
  return null;
}

const prefixed = (program: string, file: string | null): string | null => (file === null ? null : `${program} ${file}`);
const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
const isBlank = async (file: string): Promise<boolean> => /^(\s*(#.*)?\n?)*$/.test(await readText(file));
const textOr = (value: unknown): string | null => (typeof value === "string" && value.trim() !== "" ? value : null);
const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
