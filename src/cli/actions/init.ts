/** `berth init`: three questions, then the folder of `berth new`. Without a terminal, flags answer the questions. */
import { nearestWord } from "../../lib/nearest-word.ts";
import { printable } from "../../lib/printable.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { connect } from "./call-input.ts";
import { writeFolder } from "./new.ts";

interface Template {
  name: string;
  type: string;
  language: string;
  description: string;
}

/** Answers of one question that fit none of the choices, after which the command gives up. */
const ATTEMPTS_MAX = 3;
/** Names of resources, as the server takes them. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export async function init(nouns: readonly Noun[], call: Invocation): Promise<undefined> {
  const { options } = call;
  const all = (await connect(call).call(operationOf(findNoun(nouns, "template"), "list"))) as Template[];
  const asked = text(options.template);
  const given = all.find(({ name }) => name === asked);
  const names = all.map(({ name }) => name);
  if (asked !== undefined && !given) refuse("template", asked, names);
  const types = [...new Set(all.map(({ type }) => type))];
  const type = given?.type ?? (await choose("What do you make?", "type", types, call));
  const fitting = all.filter((each) => each.type === type);
  const about = new Map(fitting.map(({ name, language, description }) => [name, `${language}: ${description}`]));
  const template = given?.name ?? (await choose("Which template?", "template", [...about.keys()], call, about));
  const name = await nameFrom(template, call);
  return writeFolder(nouns, template, text(options.folder) ?? name, call);
}

/** Asks for one of the choices, by its number or its name; the first when the answer is empty. */
async function choose(
  question: string,
  option: string,
  choices: readonly string[],
  call: Invocation,
  about: ReadonlyMap<string, string> = new Map(),
): Promise<string> {
  const { context } = call;
  const flag = text(call.options[option]);
  if (flag !== undefined) return chosen(flag, choices) ?? refuse(option, flag, choices);
  mustAsk(option, choices, call);
  context.note(question);
  for (const [index, choice] of choices.entries())
    context.note(printable(`  ${index + 1}  ${choice}${about.has(choice) ? `  (${about.get(choice)})` : ""}`));
  for (let attempt = 1; ; attempt += 1) {
    const said = (await context.ask(`[1] `))?.trim() ?? "";
    const found = said === "" ? choices[0] : (chosen(said, choices) ?? choices[Number(said) - 1]);
    if (found !== undefined) return found;
    if (attempt === ATTEMPTS_MAX) refuse(option, said, choices);
  }
}

const chosen = (said: string, choices: readonly string[]): string | undefined =>
  choices.find((choice) => choice === said);

function refuse(option: string, said: string, choices: readonly string[]): never {
  const near = nearestWord(said, [...choices]);
  throw new UsageError(
    printable(`there is no ${option} '${said}'.${near ? ` Did you mean ${near}?` : ""}`),
    printable(`--${option} ${choices.join(" | ")}`),
  );
}

function mustAsk(option: string, choices: readonly string[], { context }: Invocation): void {
  if (context.canAsk) return;
  const choice = printable(`--${option} ${choices.join(" | ")}`);
  throw new UsageError(`there is no terminal to ask for the ${option}.`, choice);
}

async function nameFrom(template: string, call: Invocation): Promise<string> {
  const { context, options } = call;
  const flag = text(options.name);
  if (flag === undefined) mustAsk("name", ["NAME"], call);
  const name = flag ?? ((await context.ask(printable(`What is its name? [${template}] `)))?.trim() || template);
  if (NAME.test(name)) return name;
  throw new UsageError(`'${name}' is not a name.`, "small letters, digits and dashes, at most 63, as in my-agent");
}
