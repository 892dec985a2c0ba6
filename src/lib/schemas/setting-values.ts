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
