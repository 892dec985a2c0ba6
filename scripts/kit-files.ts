/** The file about the platform in every kit: a template has to be complete in itself, and all kits need the same. */
import { globSync, readFileSync } from "node:fs";

/** File by which a kit's language is told -> the file about the platform. */
const HELPERS: Record<string, string> = { "index.js": "berth.js", "main.py": "berth.py" };

export const kitFiles = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(HELPERS).flatMap(([entry, helper]) =>
      globSync(`examples/kit-*/${entry}`).map((file) => [
        file.replace(entry, helper),
        readFileSync(`scripts/kits/${helper}`, "utf8"),
      ]),
    ),
  );
