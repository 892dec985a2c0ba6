/** The daemon's executable for tests: compiled once per version of its sources, shared by all files and runs. */
import { join } from "node:path";
import { ROOT } from "../src/lib/root.ts";
import { cachedSandboxd } from "../src/node/sandboxd-build.ts";

export const sandboxdBinary = (): Promise<string> => cachedSandboxd(join(ROOT, "node_modules/.cache/berth"));
