/** A server that runs tasks as processes; its test kills it. Arguments: data folder, folder of the tasks, database. */
import pino from "pino";
import { startApp } from "../../src/app.ts";
import { loadConfig } from "../../src/config.ts";
import { TEST_KEY } from "../platform.ts";
import { processDriver } from "./process-driver.ts";

const [, , data = "", tasks = "", database = ""] = process.argv;
const flags = {
  data,
  port: "0",
  "api-key": TEST_KEY,
  "log-level": "silent",
  "job-slots": "8",
  "job-lease": "3",
  // Servers of one platform share it; each would otherwise make its own.
  "secret-key": "chaos-chaos-chaos-chaos-chaos-chaos",
  ...(database ? { "database-url": database } : {}),
};
const app = await startApp({
  config: loadConfig({ flags, env: {}, home: data }),
  log: pino({ level: "silent" }),
  version: "0.0.0-test",
  openDriver: async () => processDriver(tasks),
});
process.stdout.write(`${app.url}\n`);
