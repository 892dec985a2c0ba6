/**
 * `{{SECRET:name}}`, `{{IDENTITY:audience}}` and `{{FUNC:name(argument)}}` in headers and bodies that leave a workload.
 * A secret, or a token for an audience, is looked up in the route that is applied and in no other one.
 */
import { randomBytes, randomInt, randomUUID } from "node:crypto";
import { uuidv7 } from "../../ids.ts";

/** Functions in one request. */
export const FUNCTIONS_MAX = 10;
const RANDOM_MAX = 1024;
const PLACEHOLDER = /\{\{(SECRET|IDENTITY|FUNC):([^{}]{1,256})\}\}/g;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

type Make = (argument: number) => string;

const FUNCTIONS: Readonly<Record<string, Make>> = {
  uuid: () => randomUUID(),
  uuidv4: () => randomUUID(),
  uuidv7: () => uuidv7(Date.now()),
  timestamp: () => String(Math.floor(Date.now() / 1000)),
  timestamp_ms: () => String(Date.now()),
  timestamp_ns: () => `${Date.now()}000000`,
  datetime: () => new Date().toISOString().replace("T", " ").slice(0, 19),
  iso8601: () => new Date().toISOString(),
  date: () => new Date().toISOString().slice(0, 10),
  time: () => new Date().toISOString().slice(11, 19),
  randint: (below) => String(randomInt(Math.max(1, below))),
  randhex: (length) =>
    randomBytes(Math.ceil(length / 2))
      .toString("hex")
      .slice(0, length),
  randstr: (length) => Array.from(randomBytes(length), (byte) => LETTERS[byte % LETTERS.length]).join(""),
  nonce: () => randomBytes(16).toString("hex"),
};

/** Visible ASCII without the two characters that JSON would escape. */
const AUDIENCE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** The values of one route. */
export interface Fillings {
  secrets: Readonly<Record<string, string>>;
  /** Tokens by audience. */
  identities: Readonly<Record<string, string>>;
}

/** Counts the functions of one request. */
export interface FunctionBudget {
  left: number;
}

/** Placeholders that name nothing stay as they are. */
export function fillPlaceholders(text: string, fillings: Fillings, budget: FunctionBudget): string {
  if (!text.includes("{{")) return text;
  return text.replace(PLACEHOLDER, (whole, kind: string, word: string) => {
    if (kind !== "FUNC") {
      const values = kind === "SECRET" ? fillings.secrets : fillings.identities;
      return Object.hasOwn(values, word) ? (values[word] ?? whole) : whole;
    }
    const call = parseFunction(word);
    if (!call || budget.left <= 0) return whole;
    budget.left -= 1;
    return call();
  });
}

/** Why a text of a route cannot be filled; null when it can. */
export function placeholderProblem(text: string, secrets: Readonly<Record<string, unknown>>): string | null {
  for (const [whole, kind, word = ""] of text.matchAll(PLACEHOLDER)) {
    if (kind === "SECRET" && !Object.hasOwn(secrets, word)) return `${whole} names no secret of this route`;
    if (kind === "IDENTITY" && !AUDIENCE.test(word))
      return `${whole} names no audience; write visible ASCII characters without spaces, quotes and backslashes`;
    if (kind === "FUNC" && !parseFunction(word))
      return `${whole} is not a function; there are ${Object.keys(FUNCTIONS).join(", ")}`;
  }
  return null;
}

/** The audiences that a text of a route names. */
export const audiencesIn = (text: string): string[] =>
  [...text.matchAll(PLACEHOLDER)].flatMap(([, kind, word = ""]) => (kind === "IDENTITY" ? [word] : []));

function parseFunction(text: string): (() => string) | null {
  const [, name = "", argument] = /^(\w+)(?:\((\d{1,9})\))?$/.exec(text.trim()) ?? [];
  const make = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  const needsArgument = name.startsWith("rand");
  const value = Number(argument);
  if (!make || needsArgument !== (argument !== undefined)) return null;
  if (needsArgument && name !== "randint" && value > RANDOM_MAX) return null;
  return () => make(value);
}
