/** Endpoints at a sandbox's address that the platform answers itself, because the daemon inside is not trusted. */
import { DRIVE_MOUNT_PATH } from "../../contract/sandbox-own-paths.ts";
import { createDriveMounts, type MountAnswer } from "../drive/mounts.ts";
import type { Platform } from "../port.ts";

export interface SandboxRequest {
  workspace: string;
  uid: string;
  method: string;
  /** Raw path below the sandbox's address. */
  path: string;
}

/** Takes the request's body. null instead of an endpoint = the daemon answers the request. */
export type SandboxEndpoint = (body: Buffer) => Promise<MountAnswer>;

export function createOwnEndpoints(deps: Pick<Platform, "store" | "settings" | "nodes">) {
  const drives = createDriveMounts(deps);
  return ({ workspace, uid, method, path }: SandboxRequest): SandboxEndpoint | null => {
    const found = DRIVE_MOUNT_PATH.exec(path);
    if (!found) return null;
    const sandbox = { workspace, uid };
    const below = found[1] ?? "";
    if (below !== "") return method === "DELETE" ? () => drives.unmount(sandbox, below) : null;
    if (method === "GET") return () => drives.list(sandbox);
    return method === "POST" ? (body) => drives.mount(sandbox, jsonOf(body)) : null;
  };
}

/** Invalid JSON becomes a value that the schema refuses with its usual message. */
function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
}
