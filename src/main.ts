/** argv → configuration → app → signal → stop. Everything but `up` is the command-line client. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pino from "pino";
import pretty from "pino-pretty";
import { type App, startApp } from "./app.ts";
import { type Config, ConfigError, describeConfig, loadConfig, SETTINGS } from "./config.ts";
import { PlatformError } from "./contract/errors.ts";
import { writeCredentials } from "./lib/credentials.ts";

const version = (JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8")) as { version: string })
  .version;

async function up(args: string[]): Promise<void> {
  const options = Object.fromEntries(
    Object.keys(SETTINGS).map((name) => [name.replaceAll("_", "-"), { type: "string" as const }]),
  );
  const { values } = parseArgs({
    args,
    options: {
      ...options,
      config: { type: "string" },
      "check-config": { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
    strict: true,
  });
  const { "check-config": check, help, ...flags } = values as Record<string, string | boolean>;
  if (help) return console.log(usage());
  const config = loadConfig({ flags });
  if (check) return console.log(describeConfig(config));
  const stream = process.stdout.isTTY
    ? pretty({ colorize: true, ignore: "pid,hostname", translateTime: "HH:MM:ss", sync: true })
    : pino.destination({ sync: false });
  const log = pino(
    { level: config.log_level, redact: ["headers.authorization", "*.secret", "*.password", "*.apiKey"] },
    stream,
  );
  const app = await startApp({ config, log, version });
  greet(app, config);
  await stopSignal();
  log.info({}, "stopping");
  await app.stop();
}

function greet({ url, bootstrapped: { newKey, workspace } }: App, config: Config): void {
  const file = writeCredentials(config.data, { url, workspace, ...(newKey ? { apiKey: newKey } : {}) });
  const lines = [
    "",
    `  Berth ${version} is ready`,
    "",
    `  API        ${url}/v0`,
    `  Run        ${url}`,
    `  Reference  ${url}/docs`,
    `  Workspace  ${workspace}`,
    newKey ? `  API key    ${newKey}   (shown once, kept in ${file})` : `  API key    in ${file}`,
    "",
  ];
  console.error(lines.join("\n"));
}

const usage = (): string =>
  [
    "Usage: berth up [flags]",
    "",
    "Starts the server. Flags beat the environment, which beats the file given by --config.",
    "",
    ...Object.entries(SETTINGS).map(
      ([name, { env, about }]) => `  --${name.replaceAll("_", "-").padEnd(16)} ${env.padEnd(20)} ${about}`,
    ),
    `  --${"config".padEnd(16)} ${"BERTH_CONFIG".padEnd(20)} Configuration file (TOML).`,
    `  --${"check-config".padEnd(16)} ${"".padEnd(20)} Print what is in force and exit.`,
  ].join("\n");

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
}

const [command = "up", ...rest] = process.argv.slice(2);
try {
  if (command === "up") await up(rest);
  else throw new ConfigError(`unknown command '${command}'. Try: berth up --help`);
} catch (error) {
  const known =
    error instanceof ConfigError ||
    error instanceof PlatformError ||
    (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
  console.error(known ? `berth: ${(error as Error).message}` : error);
  process.exitCode = error instanceof ConfigError ? 2 : 1;
}
