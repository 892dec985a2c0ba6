/**
 * `npm run test:cluster`: provides the parts of a Kubernetes cluster, and runs the suites on a real one. The cluster
 * lives in network, mount and process namespaces of its own: when their first process ends, the kernel ends the rest
 * and drops every mount. Words after the command choose suites by name; `--file=PATH` runs another file on the cluster.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { provideDebianPackages } from "./parts/debian.ts";
import { CACHE } from "./parts/folder.ts";
import { findGo, provideGoPrograms } from "./parts/go-programs.ts";
import { makeControlGroup, removeControlGroup } from "./world/control-groups.ts";
import { makeFixedFolders } from "./world/fixed-folders.ts";

const NAMESPACES = ["--net", "--mount", "--pid", "--propagation", "private", "--fork", "--kill-child", "--mount-proc"];

const missing = reasonAgainst();
if (missing !== null) {
  console.error(`The cluster cannot be made here: ${missing}.`);
  process.exit(1);
}
provideDebianPackages();
provideGoPrograms();

const dir = mkdtempSync("/var/tmp/berth-cluster-");
const cgroup = `berth-cluster-${process.pid}`;
makeControlGroup(cgroup);
const removeFolders = makeFixedFolders();
const { values, positionals } = parseArgs({ options: { file: { type: "string" } }, allowPositionals: true });
const only = positionals.map((word) => `--test-name-pattern=${word}`);
const file = values.file ?? join(import.meta.dirname, "suites.cluster.ts");
const child = spawn("unshare", [...NAMESPACES, process.execPath, ...only, file], {
  stdio: "inherit",
  env: { ...process.env, NODE_ENV: "test", BERTH_CLUSTER_DIR: dir, BERTH_CLUSTER_CGROUP: cgroup },
});
// The first process of a namespace hears no other signal, and takes the rest with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill("SIGKILL"));
const [code] = await once(child, "exit");
removeControlGroup(cgroup);
removeFolders();
if (process.env.BERTH_CLUSTER_KEEP === "1") console.error(`Output of the cluster's programs: ${dir}`);
else rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
process.exitCode = code ?? 1;

function reasonAgainst(): string | null {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it needs Linux and root";
  const tools = ["unshare", "ip", "mount", "tar", "apt-get", "dpkg"];
  const absent = tools.filter((name) => spawnSync("which", [name]).status !== 0);
  if (absent.length > 0) return `it needs ${absent.join(", ")}`;
  if (!existsSync(join(CACHE, "bin/kubelet")) && !findGo()) return "it needs Go 1.26 to build Kubernetes once";
  return null;
}
