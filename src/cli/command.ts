/** A command is data: parsing, help, completion and the documentation test all read this one declaration. */
import type { Client } from "../client/client.ts";
import type { ConnectionOptions } from "./connection.ts";

export interface ArgumentSpec {
  name: string;
  about: string;
  optional?: boolean;
  /** Takes all remaining arguments. */
  many?: boolean;
  /** Words that completion offers. */
  offers?: "kind" | "name" | readonly string[];
}

export interface OptionSpec {
  /** As in help: `-o, --output <format>`. */
  flags: string;
  about: string;
  choices?: readonly string[];
  /** May be given several times. */
  many?: boolean;
}

export type OptionValue = string | boolean | readonly string[] | undefined;

export interface Invocation {
  /** In the order declared: undefined when omitted, a list for an argument with `many`. */
  args: readonly (string | undefined | readonly string[])[];
  options: Readonly<Record<string, OptionValue>>;
  context: Context;
}

export interface CommandSpec {
  name: string;
  summary: string;
  group: string;
  details?: string;
  args?: readonly ArgumentSpec[];
  options?: readonly OptionSpec[];
  examples?: readonly string[];
  /** Not listed in help; has its own help and completion. */
  hidden?: boolean;
  commands?: readonly CommandSpec[];
  /** Returns the exit code; undefined is 0. */
  run?(invocation: Invocation): Promise<number | undefined>;
}

/** What a command may use of its environment. */
export interface Context {
  version: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Standard output is a terminal. */
  isTerminal: boolean;
  print(text: string): void;
  /** Progress and hints, written to stderr beside the result. */
  note(text: string): void;
  readStdin(): Promise<string>;
  /** A user at a terminal can be asked. */
  canAsk: boolean;
  /** Asks without echo; null when no user can answer. */
  askSecret(question: string): Promise<string | null>;
  /** Asks with echo; null when no user can answer. */
  ask(question: string): Promise<string | null>;
  connect(options: ConnectionOptions): Client;
  now(): number;
  /** The whole tree of commands. */
  commands(): readonly CommandSpec[];
}

/** In the order of help. */
export const GROUPS = {
  resources: "Resources:",
  session: "Servers and credentials:",
  operator: "The server on this machine:",
  more: "More:",
  verbs: "Commands:",
} as const;

export const CONNECTION_OPTIONS: readonly OptionSpec[] = [
  { flags: "-w, --workspace <name>", about: "workspace to work in (BERTH_WORKSPACE)" },
  { flags: "--url <url>", about: "address of the server (BERTH_URL)" },
  { flags: "--profile <name>", about: "a server from `berth login` (BERTH_PROFILE)" },
  { flags: "--strict", about: "fail when something is sent that the server does not know, instead of warning" },
];

/** Parses flags: `-o, --output <format>` is short `-o`, long `--output`, key `output`, and takes a value. */
export function wordsOf({ flags }: OptionSpec): {
  short: string | null;
  long: string;
  key: string;
  takesValue: boolean;
} {
  const long = flags.match(/--[\w-]+/)?.[0] ?? "";
  return {
    short: flags.match(/^(-\w),/)?.[1] ?? null,
    long,
    key: long.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
    takesValue: /[<[]/.test(flags),
  };
}

export const text = (value: Invocation["args"][number] | OptionValue): string | undefined =>
  typeof value === "string" ? value : undefined;

export const texts = (value: Invocation["args"][number] | OptionValue): readonly string[] =>
  Array.isArray(value) ? (value as readonly string[]) : typeof value === "string" ? [value] : [];
