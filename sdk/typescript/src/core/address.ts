/** Addresses with texts of the caller in them. No such text changes the part of the address in front of it. */
import { BerthError } from "./errors.ts";

/** A name that is empty or dots would lead to another operation. */
export function segment(name: string, value: string): string {
  if (value === "" || value === "." || value === "..")
    throw new BerthError({ code: "invalid_parameter", message: `${name} must not be '${value}'.` });
  return encodeURIComponent(value);
}

/**
 * A path inside a sandbox, as one segment. Behind `./` a relative path is neither dots nor the name of an operation;
 * `~` is the home directory only at the beginning.
 */
export const pathSegment = (path: string): string => encodeURIComponent(/^[/~]/.test(path) ? path : `./${path}`);

/** `fetch` resolves these, also in their encoded spellings and between backslashes. */
const DOTS = /^(?:\.|%2e){1,2}$/i;

/** The URL of a path below an address, unless `fetch` would make another address of it. */
export function urlBelow(address: string, path: string): string {
  const url = address + path;
  const [base, sent] = [new URL(address), new URL(url)];
  const isBelow = sent.origin === base.origin && `${sent.pathname}/`.startsWith(`${base.pathname.replace(/\/$/, "")}/`);
  const [before = ""] = path.split(/[?#]/, 1);
  if (isBelow && !before.split(/[/\\]/).some((part) => DOTS.test(part))) return url;
  throw new BerthError({
    code: "invalid_parameter",
    message: `The path '${path}' must begin with a slash and must not have '.' or '..' between slashes.`,
  });
}
