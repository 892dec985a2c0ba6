/** Starts a server, prints how long the start took and how much memory it holds, and ends. */
import { registerHooks } from "node:module";
import { performance } from "node:perf_hooks";

export interface ServerCost {
  startMs: number;
  heapMb: number;
}

const MB = 2 ** 20;
const ROUTES = /src\/api\/console\/(console|session)-routes\.ts$/;
const NOTHING = `
  export const addConsoleRoutes = () => {};
  export const addConsoleSessionRoutes = () => {};
  export const isNavigation = () => false;
`;

if (process.argv.includes("--without-console"))
  registerHooks({
    load: (url, context, next) =>
      ROUTES.test(url) ? { format: "module", source: NOTHING, shortCircuit: true } : next(url, context),
  });
const { startTestPlatform } = await import("../../test/platform.ts");
const platform = await startTestPlatform();
const startMs = performance.now();
globalThis.gc?.();
const cost: ServerCost = { startMs, heapMb: process.memoryUsage().heapUsed / MB };
await platform.stop();
process.stdout.write(JSON.stringify(cost));
