/**
 * Variables in manifests: `$NAME`, `${NAME}`, `${NAME:default}`, and `$secrets.NAME` for values given with -s. `$$` is
 * a dollar sign; a dollar sign before anything else stays.
 */
import { UsageError } from "../lib/usage-error.ts";

export interface Variables {
  env: Readonly<Record<string, string | undefined>>;
  secrets: Readonly<Record<string, string>>;
}

const REFERENCE = /\$(?:\$|\{((?:secrets\.)?[A-Za-z_]\w*)(?::([^}]*))?\}|((?:secrets\.)?[A-Za-z_]\w*))/g;

export function interpolate(text: string, variables: Variables): string {
  return text.replace(REFERENCE, (whole, braced?: string, fallback?: string, bare?: string) => {
    const name = braced ?? bare;
    if (name === undefined) return "$";
    const value = lookup(name, variables) ?? fallback;
    if (value !== undefined) return value;
    const isSecret = name.startsWith("secrets.");
    throw new UsageError(
      `${whole} is used, but ${isSecret ? "no such secret was given" : `${name} is not set`}.`,
      isSecret
        ? `give it with -s ${name.slice(8)}=…`
        : `set it, give it with -s ${name}=…, or write \${${name}:default}`,
    );
  });
}

/** The text is exactly one reference, so its value may be a number or a boolean. */
export const isReference = (text: string): boolean => text.match(REFERENCE)?.[0] === text && text !== "$$";

function lookup(name: string, { env, secrets }: Variables): string | undefined {
  const key = name.startsWith("secrets.") ? name.slice(8) : name;
  if (Object.hasOwn(secrets, key)) return secrets[key];
  return name.startsWith("secrets.") ? undefined : env[name];
}
