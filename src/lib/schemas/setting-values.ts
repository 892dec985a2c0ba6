/** Values that a file can say with its own types, while a flag or a variable is text. */
import { z } from "zod";

export const flag = z.union([z.boolean(), z.stringbool()]);
export const list = z.union([
  z.array(z.string()),
  z.string().transform((text) =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean),
  ),
]);
/** A table in the file, `name=number` pairs elsewhere. */
export const pairs = z.union([
  z.record(z.string(), z.int().min(0)),
  z
    .string()
    .regex(/^\s*(\w+\s*=\s*\d+\s*(,\s*|$))*$/, "must be pairs such as sandboxes=10,volumes=20")
    .transform((text) =>
      Object.fromEntries([...text.matchAll(/(\w+)\s*=\s*(\d+)/g)].map(([, word, n]) => [word ?? "", Number(n)])),
    ),
]);
/** A list of tables in the file, JSON elsewhere. */
const identityProvider = z.strictObject({
  id: z.string().regex(/^[a-z0-9-]{1,32}$/, "must be lower-case letters, digits and hyphens"),
  name: z.string().min(1).max(64),
  issuer: z.url().regex(/^https:\/\/|^http:\/\/(127\.0\.0\.1|\[::1\]|localhost)[:/]/, "must start with https://"),
  client_id: z.string().min(1),
  client_secret: z.string().min(1).optional(),
  scopes: z.string().default("openid email profile"),
  groups_claim: z.string().default("groups"),
  domains: z.array(z.string().toLowerCase()).default([]),
  create_users: z.boolean().default(true),
});
export const identityProviders = z.preprocess(
  (value) => (typeof value === "string" ? parseJson(value) : value),
  z.array(identityProvider).max(20),
);
/** True = one proxy. */
export const proxies = z.union([flag.transform(Number), z.coerce.number().int().min(0).max(10)]);
/** What is not JSON is no list either, and the schema says so. */
const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
