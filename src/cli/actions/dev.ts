/** `berth dev`: runs the code of a folder on this machine, with the platform's models, sandboxes and functions. */
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { recipeFor } from "../../kinds/workload/start-command.ts";
import { printable } from "../../lib/printable.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { type Connection, resolveConnection } from "../connection.ts";
import { watchFolder } from "../dev/folder-changes.ts";
import { installEnv, type Place } from "../dev/local-env.ts";
import { startLocally } from "../dev/local-program.ts";
import { LocalRuns } from "../dev/local-runs.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { devLineOf, type Project, readProjects } from "../project.ts";
import { connect, givenEnvs, variablesOf } from "./call-input.ts";

/** The port of the documentation's examples. Another one is chosen when it is taken and none was asked for. */
const USUAL_PORT = 8000;
/** How often the credentials are looked at; a token is renewed five minutes before it ends. */
const CREDENTIALS_LOOK_MS = 60_000;
const SERVES: readonly string[] = ["agent", "application", "function"];

export async function dev(nouns: readonly Noun[], call: Invocation): Promise<number> {
  const { context } = call;
  const project = projectIn(call);
  const recipe = await recipeFor(project.dir, context.env.BERTH_BRAND ?? "berth");
  if (project.kind === "function" && recipe.stdio === true)
    throw new UsageError(
      `${project.name} uses standard input and output, so there is no address to serve.`,
      "give its start command to your MCP client, or deploy it: the platform serves such a command over HTTP",
    );
  const line = devLineOf(project.dir, context.env.BERTH_BRAND) ?? recipe.start;
  const connection = connectionOf(project, call);
  const workspace = connection.workspace ?? (await onlyWorkspace(nouns, call));
  const place: Place = { connection, workspace, port: await portFor(text(call.options.port)) };
  if (recipe.build !== null && !isInstalled(project.dir)) {
    context.note(`installing: ${recipe.build}`);
    const env = installEnv(project, place, context.env);
    const built = startLocally({ line: recipe.build, folder: project.dir, env, port: 0 });
    const end = await built.ended;
    if (end !== "ended with code 0") throw new UsageError(`the installation ${end}.`, recipe.build);
  }
  return runAndWatch(project, line, place, call);
}

/** The deploy file describes the program; of several, --name chooses. */
function projectIn(call: Invocation): Project {
  const { context, options, args } = call;
  const projects = readProjects(text(args[0]) ?? ".", {
    variables: variablesOf(call),
    envs: givenEnvs(call),
    brand: context.env.BERTH_BRAND,
  });
  const name = text(options.name);
  const found = projects.length === 1 ? projects[0] : projects.find((project) => project.name === name);
  if (!found)
    throw new UsageError(
      "this folder has several resources.",
      `choose one: --name ${projects.map((project) => project.name).join(" | ")}`,
    );
  if (!SERVES.includes(found.kind))
    throw new UsageError(`a ${found.kind} does not answer requests.`, `it can be ${SERVES.join(", ")}`);
  return { ...found, name: name ?? found.name, dir: resolve(found.dir) };
}

const connectionOf = ({ workspace }: Project, { options, context }: Invocation): Connection =>
  resolveConnection(
    {
      url: text(options.url),
      workspace: text(options.workspace) ?? workspace ?? undefined,
      profile: text(options.profile),
    },
    context.env,
  );

async function onlyWorkspace(nouns: readonly Noun[], call: Invocation): Promise<string> {
  const names: string[] = [];
  for await (const row of connect(call).items(operationOf(findNoun(nouns, "workspace"), "list")))
    names.push(String(memberAt(row, "name")));
  const [only] = names;
  if (only !== undefined && names.length === 1) return only;
  throw new UsageError("no workspace is chosen.", `choose one with \`berth workspaces NAME\`: ${names.join(", ")}`);
}

const isInstalled = (dir: string): boolean =>
  ["node_modules", ".packages", ".venv"].some((name) => existsSync(join(dir, name)));

async function portFor(asked: string | undefined): Promise<number> {
  if (asked === undefined) return (await freePort(USUAL_PORT)) ?? (await freePort(0)) ?? 0;
  const port = Number(asked);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError(`--port ${asked} is not a port.`);
  const free = await freePort(port);
  if (free === null) throw new UsageError(`port ${port} is taken.`, "choose another with --port, or 0 for any");
  return free;
}

const freePort = (port: number): Promise<number | null> =>
  new Promise((done) => {
    const server = createServer().once("error", () => done(null));
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => done(typeof address === "object" ? (address?.port ?? null) : null));
    });
  });

/** Runs until Ctrl-C. */
async function runAndWatch(project: Project, line: string, place: Place, { context }: Invocation): Promise<number> {
  const runs = new LocalRuns({ project, line, place, context });
  const watcher = watchFolder(project.dir, (path) => void runs.restart(`${printable(path)} has changed: restarting`));
  const renewal = setInterval(() => void runs.renew(), CREDENTIALS_LOOK_MS);
  try {
    await Promise.race([interrupted(), runs.start().then(() => new Promise(() => {}))]);
  } finally {
    clearInterval(renewal);
    watcher.close();
    await runs.stop();
  }
  return EXIT.ok;
}

const interrupted = (): Promise<void> =>
  new Promise((done) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => done());
  });
