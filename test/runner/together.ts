/**
 * Several test files in one process, one after the other, each as a suite with the file's path for its name: loading
 * the platform costs a second of CPU, which they share (`sharing.ts`).
 */
import { resolve } from "node:path";
import { describe } from "node:test";
import { pathToFileURL } from "node:url";
import "../closing.ts"; // here, so that its hook comes after all files and not after the first

for (const file of process.argv.slice(2)) await load(file);

/** A file that cannot be loaded fails as its suite; the next one is loaded all the same. */
function load(file: string): Promise<void> {
  const { promise, resolve: loaded } = Promise.withResolvers<void>();
  describe(file, async () => {
    try {
      await import(pathToFileURL(resolve(file)).href);
    } finally {
      loaded();
    }
  });
  return promise;
}
