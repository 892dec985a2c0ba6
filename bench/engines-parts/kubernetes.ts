/** The Kubernetes driver and `kubectl run`, on the cluster of `npm run test:cluster`, in namespaces of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { BIN } from "../../test/cluster/parts/folder.ts";
import type { Findings } from "./start.ts";

const RUN = join(import.meta.dirname, "../../test/cluster/run.ts");
const FILE = join(import.meta.dirname, "kubernetes.cluster.ts");

export async function measureKubernetes(): Promise<Findings> {
  if (!existsSync(join(BIN, "kubelet")))
    return [
      { name: "kubernetes", reason: `the programs of a cluster are not in ${BIN}; npm run test:cluster builds them` },
    ];
  const child = spawn(process.execPath, [RUN, `--file=${FILE}`], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const [code] = await once(child, "close");
  const line = said.split("\n").findLast((each) => each.startsWith("["));
  if (code !== 0 || line === undefined)
    return [{ name: "kubernetes", reason: `the cluster ended with ${code}: ${said.slice(-500)}` }];
  return JSON.parse(line) as Findings;
}
