import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import "./plain-words.ts";

const ROWS: [schema: z.ZodType, value: unknown, rule: string][] = [
  [z.string(), undefined, "is required"],
  [z.string(), 5, "must be a text, not a number"],
  [z.string().min(1), "", "must not be empty"],
  [z.string().min(3), "ab", "must have at least 3 characters"],
  [z.string().max(1), "abc", "must have at most 1 character"],
  [z.string().regex(/^[a-z]+$/), "A", "must match /^[a-z]+$/"],
  [z.string().regex(/^[a-z]+$/, "must be lower-case letters"), "A", "must be lower-case letters"],
  [z.string().startsWith("ab"), "x", 'must start with "ab"'],
  [z.email(), "x", "must be an email address"],
  [z.url(), "x", "must be an address such as https://example.com"],
  [z.ipv4(), "x", "must be an IPv4 address"],
  [z.iso.datetime(), "x", "must be a time such as 2026-03-01T00:00:00Z"],
  [z.number(), "5", "must be a number, not a text"],
  [z.int(), 1.5, "must be a whole number, not a fraction"],
  [z.coerce.number(), "x", "must be a number"],
  [z.int().min(1), 0, "must be at least 1"],
  [z.number().positive(), 0, "must be more than 0"],
  [z.int().max(65_535), 70_000, "must be at most 65535"],
  [z.int().multipleOf(4), 5, "must be a multiple of 4"],
  [z.boolean(), "yes", "must be true or false, not a text"],
  [z.array(z.string()), {}, "must be a list, not an object"],
  [z.array(z.string()).min(1), [], "must not be empty"],
  [z.array(z.string()).max(2), ["a", "b", "c"], "must have at most 2 items"],
  [z.object({}), [], "must be an object, not a list"],
  [z.object({}), true, "must be an object, not true"],
  [z.object({}), null, "must be an object, not null"],
  [z.record(z.string(), z.string()), "x", "must be an object, not a text"],
  [z.strictObject({}), { size: 1, colour: 2 }, "has unknown members: size, colour"],
  [z.enum(["a", "b"]), "c", "must be one of a, b"],
  [z.literal("agent"), "job", "must be agent"],
  [z.union([z.string(), z.number()]), true, "must be a text or a number"],
  [z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), {}, "has none of the forms that are allowed"],
  [z.string().refine(() => false), "x", "is not allowed"],
  [z.string().refine(() => false, "must rhyme"), "x", "must rhyme"],
];

test("a broken rule is told in plain words, without those of the schema library", () => {
  for (const [schema, value, rule] of ROWS) assert.equal(schema.safeParse(value).error?.issues[0]?.message, rule);
});
