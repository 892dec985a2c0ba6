/** The order in which test files are begun. */

/**
 * The longest files by `--times`. They are begun first: a long file that is begun last keeps one lane busy while the
 * others have nothing to do. A path that no longer exists does no harm.
 */
const LONGEST: readonly string[] = [
  "test/several/several.test.ts",
  "test/docker/driver.test.ts",
  "test/installed/upgrade.test.ts",
  "test/browser/pages.test.ts",
  "test/e2e/operator.test.ts",
  "test/e2e/cli.test.ts",
  "test/e2e/start.test.ts",
  "test/local/driver.test.ts",
  "test/installed/tour.test.ts",
  "test/e2e/backup.test.ts",
  "test/e2e/mcp/conformance-machine.test.ts",
  "test/jobs-chaos.test.ts",
  "test/triggers/crash.test.ts",
  "test/models/killed.test.ts",
];

export function longestFirst(files: readonly string[]): string[] {
  const first = LONGEST.filter((file) => files.includes(file));
  return [...first, ...files.filter((file) => !first.includes(file)).sort()];
}
