#!/usr/bin/env node
// Plain JavaScript that any Node can read. The version that `berth upgrade` has made current goes on, or else this one.
// A Node that is new enough goes on in this process; an older one hands over to the Node that Berth brings along.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NODE_MAJOR_MIN = 24;
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..");
const current = currentVersion(join(root, "versions"));

if (current) await import(pathToFileURL(current).href);
else if (Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN) {
  const { tuneStart } = await import("./tune-start.js");
  tuneStart();
  const { main } = await import("../src/main.ts");
  await main(process.argv.slice(2));
} else {
  const pinned = [join(root, "node_modules/.bin/node"), join(root, "../.bin/node")].find(existsSync);
  if (pinned) handOver(pinned);
  else {
    const platform = `${process.platform}-${process.arch}`;
    console.error(`berth: Node ${NODE_MAJOR_MIN} or newer is needed on ${platform}; this is ${process.version}.`);
    console.error("  next: install it from https://nodejs.org and run the same command again");
    process.exitCode = 1;
  }
}

// See src/operator/upgrade/versions.ts.
function currentVersion(folder) {
  if (!existsSync(join(folder, "current"))) return null;
  const path = join(folder, readFileSync(join(folder, "current"), "utf8").trim(), "bin/berth.js");
  if (existsSync(path)) return path;
  console.error(`berth: ${path} is missing; this is the version in ${root}.`);
  return null;
}

function handOver(node) {
  const child = spawn(node, [join(here, "berth.js"), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    // A terminal sends its signals to both processes; the child must not get them twice.
    process.on(signal, () => process.stdin.isTTY || child.kill(signal));
  }
  child.on("exit", (code, signal) => {
    process.exitCode = signal ? 128 + constants.signals[signal] : (code ?? 1);
  });
}
