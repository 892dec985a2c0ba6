/** A folder to begin with, from the templates that the platform has. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { deployFiles } from "../project.ts";
import { connect } from "./call-input.ts";
import { print } from "./show.ts";

interface TemplateFile {
  path: string;
  content: string;
}

export async function createFolder(nouns: readonly Noun[], call: Invocation): Promise<undefined> {
  const { args, context } = call;
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
  const dir = text(args[1]) ?? template;
  if (existsSync(dir) && readdirSync(dir).length > 0) throw new UsageError(`${dir} is there already and not empty.`);
  const answer = await client.call(operationOf(noun, "files"), { params: { templateName: template } });
  for (const { path, content } of (answer as { files: TemplateFile[] }).files) {
    const file = resolve(dir, path);
    // The files come from a server: none of them goes anywhere else.
    if (!file.startsWith(`${resolve(dir)}/`)) throw new UsageError(`the template names a file outside: ${path}.`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, deployFiles(undefined).includes(path) ? named(content, basename(resolve(dir))) : content);
  }
  context.print(dir);
  context.note(`next: berth deploy ${join(dir)}`);
  return undefined;
}

/** What is deployed from the folder is called like the folder. */
const named = (toml: string, name: string): string =>
  toml.replace(/^name = ".*"$/m, `name = ${JSON.stringify(name.toLowerCase().replace(/[^a-z0-9-]+/g, "-"))}`);
