/** Passwords of people: scrypt, with the cost stored beside each hash so that it can be raised later. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { PlatformError } from "../contract/errors.ts";

/** Cost of one guess: 32 MB and about 100 ms. */
const COST = { N: 2 ** 15, r: 8, p: 1 };
const HASH_BYTES = 32;
/**
 * Concurrent hashes. Each takes a thread of Node's pool and 32 MB; more would starve file access, which shares the
 * pool.
 */
const AT_ONCE_MAX = 2;
/** Longest queue; further sign-ins are refused with 429. */
const WAITING_MAX = 64;

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, COST);
  return ["scrypt", COST.N, COST.r, COST.p, salt.toString("base64url"), hash.toString("base64url")].join("$");
}

/** Takes as long for a user without a password as for a wrong password. */
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
    await new Promise<void>((resolve) => waiting.push(resolve)); // a finished hash passes its slot on
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
