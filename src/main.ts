/** The first word decides: `up` is the server, everything else the command line. Each loads only its own half. */
import { UsageError } from "./lib/usage-error.ts";

export async function main(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  try {
    if (command === "up") await (await import("./operator/up.ts")).up(rest);
    else throw new UsageError(`unknown command '${command}'.`, "see `berth up --help`");
  } catch (error) {
    const { describeFailure, exitCodeOf } = await import("./cli/failure.ts");
    console.error(describeFailure(error));
    process.exitCode = exitCodeOf(error);
  }
}

if (import.meta.main) await main(process.argv.slice(2));
