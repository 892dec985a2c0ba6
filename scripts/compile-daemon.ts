/** Compiles the daemon of workloads for this machine, so that the first start of an installation need not. */
import { join } from "node:path";
import { ROOT } from "../src/lib/root.ts";
import { cachedSandboxd } from "../src/node/sandboxd-build.ts";

console.log(await cachedSandboxd(join(ROOT, "node_modules/.cache/berth")));
