/** The first word decides: `up` is the server, everything else the command line. Each loads only its own half. */

export async function main(args: readonly string[]): Promise<void> {
  const [command, ...rest] = args;
  try {
    if (command === "--version" || command === "-V")
      console.log((await import("./operator/version.ts")).packageVersion());
    else if (command === "up") await (await import("./operator/up.ts")).up(rest);
    else if (command === "attend") await (await import("./operator/upgrade/attend.ts")).attend(rest);
    else process.exitCode = await commandLine(args);
  } catch (error) {
    const { describeFailure, exitCodeOf } = await import("./cli/failure.ts");
    console.error(describeFailure(error));
    if (args.includes("--take-over")) await tellOldServer(error);
    process.exitCode = exitCodeOf(error);
  }
}

/** A new version that fails in an upgrade tells the old one why. */
async function tellOldServer(error: unknown): Promise<void> {
  const { tellOld } = await import("./operator/upgrade/messages.ts");
  await tellOld({ type: "failed", reason: error instanceof Error ? error.message : String(error) });
  if (process.connected) process.disconnect();
}

async function commandLine(args: readonly string[]): Promise<number> {
  const [{ runProgram }, { operatorCommands }, { packageVersion }] = await Promise.all([
    import("./cli/program.ts"),
    import("./operator/commands.ts"),
    import("./operator/version.ts"),
  ]);
  return runProgram(args.length === 0 ? ["--help"] : args, { version: packageVersion(), operatorCommands });
}

if (import.meta.main) await main(process.argv.slice(2));
