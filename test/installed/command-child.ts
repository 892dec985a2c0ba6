/**
 * Runs commands of an installation one after the other in one process, which saves loading it for each of two hundred:
 * `node command-child.ts ROOT`, told over the channel to its parent.
 */
import { join } from "node:path";

const { main } = (await import(join(process.argv[2] ?? "", "src/main.ts"))) as {
  main(args: readonly string[]): Promise<void>;
};
process.stdout.setMaxListeners(0); // each command listens for the end of its reader

process.on("message", async (args: string[]) => {
  const said = { stdout: "", stderr: "" };
  const write = { stdout: process.stdout.write, stderr: process.stderr.write };
  for (const name of ["stdout", "stderr"] as const)
    process[name].write = ((text: string | Uint8Array, ...rest: unknown[]): boolean => {
      said[name] += typeof text === "string" ? text : Buffer.from(text).toString();
      const done = rest.find((each) => typeof each === "function") as (() => void) | undefined;
      done?.();
      return true;
    }) as typeof process.stdout.write;
  process.exitCode = 0;
  try {
    await main(args);
  } finally {
    process.stdout.write = write.stdout;
    process.stderr.write = write.stderr;
  }
  process.send?.({ ...said, code: Number(process.exitCode) });
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
