/** Passwords of people: scrypt, with the cost written beside each hash so that it can be raised later. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { PlatformError } from "../contract/errors.ts";

/** 32 MB and about 100 ms for each guess. */
const COST = { N: 2 ** 15, r: 8, p: 1 };
const HASH_BYTES = 32;
/** Each runs on a thread of its own and takes 32 MB; more at once would starve file access, which shares the threads. */
const AT_ONCE_MAX = 2;
/** Whoever comes when so many wait is told to come again. */
const WAITING_MAX = 64;

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, COST);
  return ["scrypt", COST.N, COST.r, COST.p, salt.toString("base64url"), hash.toString("base64url")].join("$");
}

/** Takes as long for somebody who has no password as for a wrong one. */
export async function verifyPassword(password: string, stored: string | null): Promise<boolean> {
  const [, n, r, p, salt = "", expected = ""] = (stored ?? (await nobodysHash())).split("$");
  const hash = await derive(password, Buffer.from(salt, "base64url"), { N: Number(n), r: Number(r), p: Number(p) });
  return timingSafeEqual(hash, Buffer.from(expected, "base64url")) && stored !== null;
}

let nobody: Promise<string> | null = null;
function nobodysHash(): Promise<string> {
  nobody ??= hashPassword(randomBytes(32).toString("base64url"));
  return nobody;
}

let running = 0;
const waiting: (() => void)[] = [];

async function derive(password: string, salt: Buffer, cost: { N: number; r: number; p: number }): Promise<Buffer> {
  if (running >= AT_ONCE_MAX) {
    if (waiting.length >= WAITING_MAX)
      throw new PlatformError("too_many_requests", "Too many people sign in at the same time. Try again in a moment.");
    await new Promise<void>((resolve) => waiting.push(resolve)); // whoever ends hands its place on
  } else running += 1;
  try {
    const options: ScryptOptions = { ...cost, maxmem: 256 * cost.N * cost.r };
    return await new Promise<Buffer>((resolve, reject) =>
      scrypt(password.normalize("NFKC"), salt, HASH_BYTES, options, (error, key) =>
        error ? reject(error) : resolve(key),
      ),
    );
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}
