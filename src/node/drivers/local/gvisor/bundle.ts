/** The workload as an OCI bundle, the form in which runsc reads it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CAP } from "../calls/syscalls.ts";
import { ID_COUNT, type LaunchPlan, type MappedIdentity } from "../workload/launch-program.ts";
import { mountDir, STAGE } from "./vm-stage.ts";

export const bundleDir = (dir: string): string => join(dir, "bundle");
/** Holds the memory of the workload while it sleeps on disk. */
export const memoryDir = (dir: string): string => join(dir, "memory");
/** Below that folder, the memory as a whole. */
export const WHOLE = "whole";

export function writeBundle(plan: VmPlan): void {
  const dir = bundleDir(plan.dir);
  for (const each of [dir, memoryDir(plan.dir)]) mkdirSync(each, { recursive: true, mode: 0o700 });
  writeFileSync(join(dir, "config.json"), JSON.stringify(bundleOf(plan)));
}

/** A plan whose root inside is mapped: the sentry and its gofer run as that unprivileged user. */
export interface VmPlan extends LaunchPlan {
  identity: MappedIdentity;
}

/** Beyond those of grade `mapped`: the guest kernel has no setting that opens low ports to everybody. */
const CAPABILITIES = [...Object.keys(CAP), "NET_BIND_SERVICE"].map((name) => `CAP_${name}`);

function bundleOf({ identity, argv, env, hostname, shared, mounts, memoryMb }: VmPlan): object {
  const ids = [{ containerID: 0, hostID: identity.idBase, size: ID_COUNT }];
  const capabilities = { bounding: CAPABILITIES, effective: CAPABILITIES, permitted: CAPABILITIES };
  return {
    ociVersion: "1.0.2",
    process: { user: { uid: 0, gid: 0 }, args: argv, env, cwd: "/", capabilities, noNewPrivileges: true },
    root: { path: STAGE.root, readonly: false },
    hostname,
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev/shm", type: "tmpfs", source: "tmpfs", options: ["mode=1777", `size=${memoryMb >> 1}m`] },
      // Without a mount of its own runsc puts an empty /tmp into memory, which ends with the sandbox.
      bind(STAGE.temp, "/tmp", false),
      ...[...shared.map(({ at, readOnly }) => ({ path: at, readOnly })), ...mounts].map(({ path, readOnly }, index) =>
        bind(mountDir(index), path, readOnly),
      ),
    ],
    linux: {
      uidMappings: ids,
      gidMappings: ids,
      namespaces: ["pid", "mount", "ipc", "uts", "user"].map((type) => ({ type })),
    },
  };
}

const bind = (source: string, destination: string, readOnly: boolean): object => ({
  destination,
  type: "bind",
  source,
  options: ["bind", readOnly ? "ro" : "rw"],
});
