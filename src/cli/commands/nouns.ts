/** The noun-first commands, one for every verb of every noun: `berth drive list`, `berth invitation accept ID`. */
import { z } from "zod";
import type { Operation } from "../../contract/operation.ts";
import { runOperation } from "../actions/operations.ts";
import { create, get, list, remove, update } from "../actions/resources.ts";
import {
  type ArgumentSpec,
  type CommandSpec,
  GROUPS,
  type Invocation,
  type OptionSpec,
  text,
  texts,
  wordsOf,
} from "../command.ts";
import { hyphenate, type Noun, placeholderOf } from "../nouns.ts";
import { EVENTS, FILES, LISTING, MEMBERS, QUERY, REMOTE, WATCH, YES } from "./options.ts";

interface VerbSpec {
  args(operation: Operation): ArgumentSpec[];
  options: readonly OptionSpec[];
  run(noun: Noun, call: Invocation): Promise<number | undefined>;
}

const name = (operation: Operation): ArgumentSpec => ({
  name: placeholderOf(operation),
  about: operation.params.length > 1 ? "its name below what contains it" : "its name",
  offers: "name",
});
/** An operation without path parameters takes no name. */
const place = (operation: Operation): ArgumentSpec[] => (operation.params.length > 0 ? [name(operation)] : []);
const first = ({ args }: Invocation): string => text(args[0]) ?? "";

const VERBS: Record<string, VerbSpec> = {
  list: {
    args: place,
    options: [...LISTING, ...WATCH],
    run: (noun, call) => list(noun, first(call), call),
  },
  get: { args: place, options: WATCH, run: (noun, call) => get(noun, first(call), call) },
  create: {
    args: (operation) => [
      { name: [...operation.params, "name"].join("/"), about: "its name", optional: operation.params.length === 0 },
    ],
    options: [...MEMBERS, ...FILES],
    run: (noun, call) => create(noun, first(call), call),
  },
  update: {
    args: (operation) => [name(operation)],
    options: [...MEMBERS, ...FILES],
    run: (noun, call) => update(noun, first(call), call),
  },
  delete: {
    args: (operation) => [{ ...name(operation), many: true }],
    options: [YES],
    run: (noun, call) => remove(noun, texts(call.args[0]), call),
  },
};

export const nounCommands = (nouns: readonly Noun[]): CommandSpec[] =>
  nouns.map((noun) => ({
    name: noun.name,
    group: GROUPS.verbs,
    summary: noun.summary,
    hidden: true,
    commands: [...noun.verbs].map(([verb, operation]) => verbCommand(noun, verb, operation)),
  }));

function verbCommand(noun: Noun, verb: string, operation: Operation): CommandSpec {
  const spec = VERBS[verb] ?? otherVerb(operation);
  const shared = [...spec.options, QUERY, ...REMOTE];
  const own = queryOptions(operation, shared);
  const example = spec.args(operation).map((arg) => ` ${arg.name.toUpperCase()}`);
  return {
    name: verb,
    group: GROUPS.verbs,
    summary: operation.summary,
    args: spec.args(operation),
    options: [...own.map(({ option }) => option), ...shared],
    examples: [`berth ${noun.name} ${verb}${example.join("")}`],
    run: async (call) => spec.run(noun, withQuery(call, own)),
  };
}

const otherVerb = (operation: Operation): VerbSpec => ({
  args: place,
  options: [
    ...(operation.body ? [{ flags: "--data <json>", about: "the body, as JSON" }, ...FILES] : []),
    ...(operation.events ? EVENTS : []),
  ],
  run: (_noun, call) => runOperation(operation, first(call), call),
});

interface QueryOption {
  parameter: string;
  option: OptionSpec;
}

/** Each query parameter becomes an option, unless an option of that name exists or the client sends it itself. */
function queryOptions({ query }: Operation, shared: readonly OptionSpec[]): QueryOption[] {
  const given = shared.map((option) => wordsOf(option).long);
  // Lists have --search for the parameter q.
  const taken = new Set(["--cursor", ...(given.includes("--search") ? ["--q"] : []), ...given]);
  return Object.entries(query?.shape ?? {})
    .map(([parameter, schema]) => ({
      parameter,
      option: {
        flags: `--${hyphenate(parameter)} [value]`,
        about: (schema instanceof z.ZodType && schema.description) || "query parameter",
      },
    }))
    .filter(({ option }) => !taken.has(wordsOf(option).long));
}

/** An option without a value means true. */
function withQuery(call: Invocation, own: readonly QueryOption[]): Invocation {
  const given = own.flatMap(({ parameter, option }) => {
    const value = call.options[wordsOf(option).key];
    return value === undefined ? [] : [`${parameter}=${value}`];
  });
  return { ...call, options: { ...call.options, query: [...texts(call.options.query), ...given] } };
}
