/** npm run bench -- NAME [flags]: runs one benchmark, or lists them. Each prints ratios against references of the same run. */
import { globSync } from "node:fs";
import { basename, join } from "node:path";

const names = globSync("*.ts", { cwd: import.meta.dirname })
  .map((file) => basename(file, ".ts"))
  .filter((name) => !["run", "measure"].includes(name))
  .sort();
const [name, ...flags] = process.argv.slice(2);
if (!name || !names.includes(name)) {
  console.error(`Usage: npm run bench -- NAME\nThere are: ${names.join(", ")}`);
  process.exit(name ? 2 : 0);
}
const { run } = (await import(join(import.meta.dirname, `${name}.ts`))) as { run(flags: string[]): Promise<void> };
await run(flags);
process.exit(0);
