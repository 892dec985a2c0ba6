#!/usr/bin/env node
// Plain JavaScript that any Node can read: it starts the real program on the Node that Berth brings along.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const pinned = [join(root, "node_modules/.bin/node"), join(root, "../.bin/node")].find(existsSync);
if (!pinned && Number(process.versions.node.split(".")[0]) < 24) {
  console.error(
    `berth: Node 24 or newer is needed on ${process.platform}-${process.arch}; this is ${process.version}.`,
  );
  process.exit(1);
}
const child = spawn(pinned ?? process.execPath, [join(root, "src/main.ts"), ...process.argv.slice(2)], {
  stdio: "inherit",
});
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(signal ? 128 + 15 : (code ?? 1)));
