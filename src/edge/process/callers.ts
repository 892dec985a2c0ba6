/**
 * Callers and their permissions as the owner told them, kept until any identity changes. A credential is looked at again
 * after a while also without a change, so that the owner hears that it is in use.
 */
import { createHash } from "node:crypto";
import type { GatewayDeps, Principal } from "../../gateway/deps.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import type { Ask } from "./questions.ts";

/** Cached callers, permissions and refusals, to bound memory. A full cache is emptied. */
const CACHE_MAX = 10_000;
/** The owner writes times of last use once a minute. */
const LOOK_AGAIN_MS = 30 * SECOND_MS;
/** How long a text that is no credential is remembered. Workloads with credentials of their own repeat theirs. */
const REFUSAL_MS = SECOND_MS;

/** How long an answer about an open connection is remembered without a change. */
const STANDING_MS = 5 * SECOND_MS;

interface TokenPrincipal extends Principal {
  token: string;
}

export interface Callers extends Pick<GatewayDeps, "authenticate" | "authorize" | "stillAllowed"> {
  forget(): void;
}

export function createCallers(ask: Ask, clock: Clock): Callers {
  const callers = new Map<string, { principal: TokenPrincipal; untilMs: number }>();
  /** By hash, apart from callers: anybody can send many long texts, and must not push callers out of the cache. */
  const refusedUntilMs = new Map<string, number>();
  const permissions = new Map<string, boolean>();
  /** One caller often has many connections, which are looked at together. */
  const standing = new Map<string, { answer: Promise<boolean>; untilMs: number }>();
  const keep = <T>(cache: Map<string, T>, key: string, value: T): void => {
    if (cache.size >= CACHE_MAX) cache.clear();
    cache.set(key, value);
  };

  async function recognise(token: string): Promise<TokenPrincipal | null> {
    const hash = createHash("sha256").update(token).digest("base64");
    if ((refusedUntilMs.get(hash) ?? 0) > clock.now()) return null;
    const { value, fresh } = await ask("caller", { token });
    const nowMs = clock.now();
    if (value === null) {
      if (fresh) keep(refusedUntilMs, hash, nowMs + REFUSAL_MS);
      return null;
    }
    const principal = { ...value.principal, token };
    if (fresh) keep(callers, token, { principal, untilMs: Math.min(value.untilMs, nowMs + LOOK_AGAIN_MS) });
    return principal;
  }

  return {
    authenticate(token) {
      const known = callers.get(token);
      if (known && known.untilMs > clock.now()) return known.principal;
      callers.delete(token);
      return recognise(token);
    },
    authorize(principal, { workspace, kind, kept = null }) {
      const { token } = principal as TokenPrincipal;
      const key = JSON.stringify([token, workspace, kind, kept]);
      const known = permissions.get(key);
      if (known !== undefined) return known;
      return ask("permission", { token, workspace, kind, kept }).then(({ value, fresh }) => {
        if (fresh) keep(permissions, key, value);
        return value;
      });
    },
    stillAllowed(token, { workspace, kind, kept = null }) {
      const key = JSON.stringify([token, workspace, kind, kept]);
      const known = standing.get(key);
      if (known && known.untilMs > clock.now()) return known.answer;
      const answer = ask("stillAllowed", { token, workspace, kind, kept }).then(({ value }) => value);
      keep(standing, key, { answer, untilMs: clock.now() + STANDING_MS });
      return answer;
    },
    forget() {
      standing.clear();
      callers.clear();
      refusedUntilMs.clear();
      permissions.clear();
    },
  };
}
