/**
 * The control plane against its floors, in one run: durable creates over HTTP against bare durable SQLite commits,
 * point reads against an empty Fastify route with a bearer check, list pages and searches as the number of resources
 * grows on both databases, start-up time and idle memory.
 * Flags: --rows=N (largest list, default 100000; up to 1000000), --only=requests or --only=lists.
 */
import { testDatabases } from "../test/databases.ts";
import { lists } from "./control-plane-parts/lists.ts";
import { requests } from "./control-plane-parts/requests.ts";

export async function run(flags: string[]): Promise<void> {
  const flagValue = (flag: string): string | undefined =>
    flags.find((one) => one.startsWith(`--${flag}=`))?.slice(flag.length + 3);
  const only = flagValue("only");
  if (only !== "lists") await requests();
  if (only === "requests") return;
  const databases = await testDatabases();
  for (const database of databases.all) {
    if (database.skip) console.log(`\nLists on ${database.name}: skipped; ${database.skip}`);
    else await lists(Number(flagValue("rows") ?? 100_000), database);
  }
  await databases.stop();
}
