/** The command line: builds a parser from the declarations, runs the command, and exits with its code. */
import { createInterface } from "node:readline";
import { text as readAll } from "node:stream/consumers";
import { Command, CommanderError, Option } from "commander";
import { createClient } from "../client/client.ts";
import { KINDS, OPERATIONS } from "../kinds/index.ts";
import { nearestWord } from "../lib/nearest-word.ts";
import { printable } from "../lib/printable.ts";
import { UsageError } from "../lib/usage-error.ts";
import { type CommandSpec, type Context, GROUPS, type OptionSpec, type OptionValue } from "./command.ts";
import { auditVerbs } from "./commands/audit.ts";
import { billingCommands } from "./commands/billing.ts";
import { deployCommands } from "./commands/deploy.ts";
import { driveVerbs } from "./commands/drive.ts";
import { environmentCommands } from "./commands/environment.ts";
import { imageVerbs } from "./commands/image.ts";
import { logsCommands } from "./commands/logs.ts";
import { moreCommands } from "./commands/more.ts";
import { nounCommands } from "./commands/nouns.ts";
import { operationCommands } from "./commands/operations.ts";
import { REMOTE } from "./commands/options.ts";
import { resourceCommands } from "./commands/resources.ts";
import { sandboxVerbs } from "./commands/sandbox.ts";
import { sessionCommands } from "./commands/session.ts";
import { volumeVerbs } from "./commands/volume.ts";
import { dataFolder, resolveConnection } from "./connection.ts";
import { EXIT, EXIT_MEANING } from "./failure.ts";
import { httpFetch } from "./http-fetch.ts";
import { nounsOf } from "./nouns.ts";
import { useTrustedAuthorities } from "./trusted-authorities.ts";

export interface ProgramOptions {
  version: string;
  /** Commands about the server on this machine. */
  operatorCommands: readonly CommandSpec[];
}

export function allCommands(operatorCommands: readonly CommandSpec[]): CommandSpec[] {
  const nouns = nounsOf(KINDS, OPERATIONS);
  const commands = [
    ...resourceCommands(nouns),
    ...deployCommands(nouns),
    ...logsCommands(nouns),
    ...operationCommands(nouns, OPERATIONS),
    ...sessionCommands(OPERATIONS),
    ...operatorCommands,
    ...billingCommands(OPERATIONS),
    ...environmentCommands,
    ...moreCommands,
    ...nounCommands(nouns).map(withOwnVerbs),
  ];
  const order: readonly string[] = Object.values(GROUPS);
  return commands.sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
}

const OWN_VERBS: Record<string, readonly CommandSpec[]> = {
  audit: auditVerbs,
  drive: driveVerbs,
  image: imageVerbs,
  sandbox: sandboxVerbs,
  volume: volumeVerbs,
};

/** Adds a noun's own verbs to those of its operations; a verb of the same name replaces the operation's. */
function withOwnVerbs(noun: CommandSpec): CommandSpec {
  const own = OWN_VERBS[noun.name] ?? [];
  const names = new Set(own.map(({ name }) => name));
  return { ...noun, commands: [...(noun.commands ?? []).filter(({ name }) => !names.has(name)), ...own] };
}

export async function runProgram(
  args: readonly string[],
  { version, operatorCommands }: ProgramOptions,
): Promise<number> {
  const commands = allCommands(operatorCommands);
  const context = processContext(version, commands);
  useTrustedAuthorities(dataFolder(context.env));
  let code: number | undefined;
  const program = root(version, commands);
  // Only the command named first is given to the parser; there are several hundred.
  const named = commands.filter(({ name }) => isCalled(name, args[0]));
  for (const command of named.length > 0 ? named : commands)
    program.addCommand(
      build(command, "berth", context, (given) => (code = given)),
      { hidden: command.hidden ?? false },
    );
  refuseUnknown(args[0], commands);
  try {
    await program.parseAsync([...args], { from: "user" });
    return code ?? EXIT.ok;
  } catch (error) {
    // The parser has already printed the error; --help is no error.
    if (error instanceof CommanderError)
      return error.exitCode === 0 || error.code === "commander.help" ? EXIT.ok : EXIT.usage;
    throw error;
  }
}

/** Aliases of commands, at any level. */
const ALIASES: Readonly<Record<string, string>> = { list: "ls", node: "nodes" };

const isCalled = (name: string, word: string | undefined): boolean =>
  word !== undefined && (name === word || ALIASES[name] === word);

/** Suggests a command for a typo, kinds included; the parser only suggests commands that its help lists. */
function refuseUnknown(first: string | undefined, commands: readonly CommandSpec[]): void {
  if (first === undefined || first.startsWith("-") || commands.some(({ name }) => isCalled(name, first))) return;
  const near = nearestWord(
    first,
    commands.map(({ name }) => name),
  );
  throw new UsageError(
    `unknown command '${printable(first)}'.${near ? ` Did you mean ${near}?` : ""}`,
    near ? `berth ${near} --help` : "see `berth --help`",
  );
}

function root(version: string, commands: readonly CommandSpec[]): Command {
  const nouns = commands.filter(({ commands: verbs, hidden }) => verbs && hidden).map(({ name }) => name);
  const program = parser("berth")
    .description("Agents, MCP servers, model APIs, jobs and sandboxes on your own machine.")
    .version(version, "-V, --version", "print the version")
    .addHelpText(
      "after",
      () => `
Kinds (berth KIND --help):
${wrap(nouns)}

Exit codes:
${Object.entries(EXIT_MEANING)
  .map(([code, meaning]) => `  ${code}  ${meaning}`)
  .join("\n")}

Examples:
  berth up
  berth list drives
  berth apply -f platform.yaml
  berth get drive my-drive -o yaml`,
    );
  // The same options are accepted before the command; help shows them with each command.
  for (const option of REMOTE) program.addOption(toOption(option).hideHelp());
  return program;
}

function build(spec: CommandSpec, under: string, context: Context, end: (code: number | undefined) => void): Command {
  const path = `${under} ${spec.name}`;
  const command = parser(spec.name, path)
    .description(spec.details ? `${spec.summary}\n\n${spec.details}` : spec.summary)
    .summary(spec.summary);
  command.helpGroup(spec.group);
  const alias = ALIASES[spec.name];
  if (alias) command.alias(alias);
  for (const { name, about, optional, many } of spec.args ?? []) {
    const dots = many ? `${name}...` : name;
    command.argument(optional ? `[${dots}]` : `<${dots}>`, about);
  }
  for (const option of spec.options ?? []) command.addOption(toOption(option));
  for (const child of spec.commands ?? []) command.addCommand(build(child, path, context, end));
  if (spec.examples)
    command.addHelpText("after", `\nExamples:\n${spec.examples.map((line) => `  ${line}`).join("\n")}`);
  const { run } = spec;
  if (run) {
    command.action(async () => {
      const options = command.optsWithGlobals<Record<string, OptionValue>>();
      end(await run({ args: command.processedArgs as string[], options, context }));
    });
  }
  return command;
}

const parser = (name: string, path = name): Command =>
  new Command(name)
    .exitOverride()
    .helpCommand(false)
    .showHelpAfterError(`  next: see \`${path} --help\``)
    .configureOutput({ outputError: (message, write) => write(message.replace(/^error: /, "berth: ")) })
    .helpOption("-h, --help", "show help");

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.about);
  if (spec.choices) option.choices([...spec.choices]);
  if (spec.many) option.argParser((value: string, before: string[] | undefined) => [...(before ?? []), value]);
  return option;
}

/** Wraps words to the width of a terminal. */
function wrap(words: readonly string[]): string {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < 78) lines[lines.length - 1] = `${last}, ${word}`;
    else lines.push(`  ${word}`);
  }
  return lines.join(",\n");
}

/** Largest standard input; far more than any manifest. */
const STDIN_CHARS_MAX = 16 * 1024 * 1024;

function processContext(version: string, commands: readonly CommandSpec[]): Context {
  // The reader may close its end early, as `head` does; that is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(EXIT.ok);
  });
  const { env } = process;
  const told = new Set<string>();
  const onWarning = (text: string): void => {
    if (told.has(text)) return;
    told.add(text);
    process.stderr.write(`berth: warning: ${printable(text)}\n`);
  };
  return {
    version,
    env,
    isTerminal: process.stdout.isTTY === true,
    print: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
    readStdin: async () => (await readAll(process.stdin)).slice(0, STDIN_CHARS_MAX),
    canAsk: process.stdin.isTTY === true,
    askSecret,
    ask,
    connect: (options) => {
      const { url, bearer, workspace } = resolveConnection(options, env);
      return createClient({
        url,
        apiKey: bearer,
        workspace,
        strict: options.strict === true,
        onWarning,
        fetch: httpFetch,
      });
    },
    now: () => Date.now(),
    commands: () => commands,
  };
}

async function ask(question: string): Promise<string | null> {
  if (!process.stdin.isTTY) return null;
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise((resolve) => {
      reader.question(question, resolve);
      reader.once("close", () => resolve(null));
    });
  } finally {
    reader.close();
  }
}

async function askSecret(question: string): Promise<string | null> {
  if (!process.stdin.isTTY) return (await readAll(process.stdin)).slice(0, STDIN_CHARS_MAX);
  process.stderr.write(question);
  const reader = createInterface({ input: process.stdin, terminal: true });
  try {
    return await new Promise((resolve) => {
      reader.once("line", resolve);
      reader.once("close", () => resolve(null));
    });
  } finally {
    reader.close();
    process.stderr.write("\n");
  }
}
