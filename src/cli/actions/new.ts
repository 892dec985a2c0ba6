/** `berth new`: creates a folder from one of the platform's templates. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { ApiError } from "../../client/api-error.ts";
import { nearestWord } from "../../lib/nearest-word.ts";
import { printable } from "../../lib/printable.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { resolveConnection } from "../connection.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { deployFiles } from "../project.ts";
import { connect } from "./call-input.ts";
import { print } from "./show.ts";

interface TemplateFile {
  path: string;
  content: string;
}

export async function createFolder(nouns: readonly Noun[], call: Invocation): Promise<undefined> {
  const { args } = call;
  const noun = findNoun(nouns, "template");
  const client = connect(call);
  const template = text(args[0]);
  if (template === undefined) {
    const all = (await client.call(operationOf(noun, "list"))) as Record<string, unknown>[];
    return print(
      call,
      null,
      "table",
      all.map(({ name, type, language, description }) => ({ name, type, language, description })),
    );
  }
  return writeFolder(nouns, template, text(args[1]) ?? template, call);
}

/** Writes the files of a template into a new folder, and tells the next step. */
export async function writeFolder(
  nouns: readonly Noun[],
  template: string,
  dir: string,
  call: Invocation,
): Promise<undefined> {
  const { context } = call;
  const noun = findNoun(nouns, "template");
  const client = connect(call);
  if (existsSync(dir) && readdirSync(dir).length > 0) throw new UsageError(`${dir} is there already and not empty.`);
  const { files } = (await client
    .call(operationOf(noun, "files"), { params: { templateName: template } })
    .catch(async (error: unknown) => {
      throw isNotFound(error) ? await withSuggestion(template, () => client.call(operationOf(noun, "list"))) : error;
    })) as { files: TemplateFile[] };
  for (const { path, content } of files) {
    const file = resolve(dir, path);
    // The file names come from a server: refuse those that leave the folder.
    if (!file.startsWith(`${resolve(dir)}/`))
      throw new UsageError(`the template names a file outside: ${printable(path)}.`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, isDeployFile({ path, content }) ? named(content, basename(resolve(dir))) : content);
  }
  context.print(dir);
  context.note(`next: ${files.some(isDeployFile) ? `berth deploy ${shellWord(dir)}` : runStep(dir, call)}`);
  return undefined;
}

const isDeployFile = ({ path }: TemplateFile): boolean => deployFiles(undefined).includes(path);

/** The next step for a program that runs on this machine and is not deployed; its README names the variables. */
function runStep(dir: string, { context, options }: Invocation): string {
  const asked = { url: text(options.url), workspace: text(options.workspace), profile: text(options.profile) };
  const { url, workspace } = resolveConnection(asked, context.env);
  const chosen = [
    ...(asked.url === undefined ? [] : ["--url", shellWord(asked.url)]),
    ...(asked.profile === undefined ? [] : ["--profile", shellWord(asked.profile)]),
  ];
  const variables = [
    `BL_API_URL=${shellWord(`${url}/v0`)}`,
    ...(workspace === null ? [] : [`BL_WORKSPACE=${shellWord(workspace)}`]),
    `BL_API_KEY="$(${["berth", "token", ...chosen].join(" ")})"`,
  ];
  return `cd ${shellWord(dir)} && ${variables.join(" ")} node index.js`;
}

/** Quotes a word for the shell. */
const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

async function withSuggestion(given: string, list: () => Promise<unknown>): Promise<ApiError> {
  const names = ((await list()) as { name: string }[]).map(({ name }) => name);
  const near = nearestWord(given, names);
  const message = `There is no template '${given}'.${near ? ` Did you mean ${near}?` : ""} Known: ${names.join(", ")}.`;
  return new ApiError({ status: 404, code: "not_found", message });
}

/** The deployed resource gets the folder's name. */
const named = (toml: string, name: string): string =>
  toml.replace(/^name = ".*"$/m, `name = ${JSON.stringify(name.toLowerCase().replace(/[^a-z0-9-]+/g, "-"))}`);
