/** The catalogue of templates: each folder under examples/ is one. */
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "../../lib/root.ts";
import { templateVariable } from "./operations.ts";

const EXAMPLES = join(ROOT, "examples");

const manifest = z.strictObject({
  type: z.string(),
  language: z.string(),
  description: z.string(),
  topics: z.array(z.string()),
  variables: z.array(templateVariable),
});

export interface Template extends z.infer<typeof manifest> {
  name: string;
  sha: string;
  files: { path: string; content: string }[];
}

let known: ReadonlyMap<string, Template> | null = null;

/** Read once: the templates are part of the program. */
export function templates(): ReadonlyMap<string, Template> {
  known ??= new Map(
    globSync("*/template.json", { cwd: EXAMPLES })
      .sort()
      .map((file) => readTemplate(file.replace(/[/\\]template\.json$/, "")))
      .map((template) => [template.name, template]),
  );
  return known;
}

function readTemplate(name: string): Template {
  const folder = join(EXAMPLES, name);
  const paths = globSync("**/*", { cwd: folder, withFileTypes: true, exclude: ["**/node_modules", "**/__pycache__"] })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => path !== "template.json")
    .sort();
  const files = paths.map((path) => ({ path, content: readFileSync(join(folder, path), "utf8") }));
  const hash = createHash("sha256");
  for (const { path, content } of files) hash.update(`${path}\0${content}\0`);
  const described = manifest.parse(JSON.parse(readFileSync(join(folder, "template.json"), "utf8")));
  return { ...described, name, files, sha: hash.digest("hex") };
}
