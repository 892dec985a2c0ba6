/** A server in a process of its own, to be killed: its workloads are all the agent on the port that it is told. */
import { fakeDriver } from "../fake-driver.ts";
import { startTestPlatform } from "../platform.ts";
import { agentMachine } from "./agent-world.ts";

const [dataDir = "", databaseUrl = "", agentPort = ""] = process.argv.slice(2);
const machine = agentMachine(Number(agentPort));
const platform = await startTestPlatform({
  dataDir,
  databaseUrl: databaseUrl || null,
  driver: fakeDriver(machine),
  config: { private_callbacks: "true" },
});
process.once("SIGTERM", async () => {
  await platform.stop();
  await machine.dispose();
  process.exit(0);
});
console.log(`url ${platform.url}`);
