/** Tokens of the registry: the credentials they were given for, sealed, and what they allow. Nothing is stored. */
import { z } from "zod";
import { createSealedBox } from "../../lib/sealed-box.ts";
import { type Clock, MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";

export const ACTIONS = ["pull", "push", "delete"] as const;
export type Action = (typeof ACTIONS)[number];
export const isAction = (word: string): word is Action => (ACTIONS as readonly string[]).includes(word);

/** A service account with its secret, or an API key with any user name. */
export interface Secret {
  user: string;
  password: string;
}

const shape = z.object({
  secret: z.object({ user: z.string(), password: z.string() }),
  allowed: z.record(z.string(), z.array(z.enum(ACTIONS))),
  until: z.number(),
});

export type RegistryToken = z.infer<typeof shape>;

const PREFIX = "registry.";
const CONTEXT = "registry-token";
/** A push of a large layer has to begin within this time; clients ask for a new token by themselves. */
const LIFE_MS = 30 * MINUTE_MS;

export type RegistryTokens = ReturnType<typeof createRegistryTokens>;

export function createRegistryTokens({ keyFor, clock }: { keyFor(purpose: string): Buffer; clock: Clock }) {
  const box = createSealedBox(keyFor(CONTEXT));
  return {
    /** `untilMax`: when the token ends at the latest. */
    make(token: Omit<RegistryToken, "until">, untilMax: number): { token: string; expiresInSeconds: number } {
      const now = clock.now();
      const until = Math.min(now + LIFE_MS, untilMax);
      const sealed = box.seal(JSON.stringify({ ...token, until }), CONTEXT);
      return { token: `${PREFIX}${sealed}`, expiresInSeconds: Math.floor((until - now) / SECOND_MS) };
    },

    /** Null for other texts and for a token that has ended. */
    open(text: string): RegistryToken | null {
      if (!text.startsWith(PREFIX)) return null;
      try {
        const token = shape.parse(JSON.parse(box.open(text.slice(PREFIX.length), CONTEXT)));
        return token.until > clock.now() ? token : null;
      } catch {
        return null; // not made here
      }
    },
  };
}
