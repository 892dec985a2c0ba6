/** /health, /upgrade, /environment/reload, /drives/mount. */

import { readFileSync } from "node:fs";
import type { DriveMount } from "../../contract/sandbox-wire.ts";
import { bunVersion } from "../bun.ts";
import { ApiError, errnoOf } from "../http/api-error.ts";
import { type Call, field, readJson } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { BUILD_TIME, VERSION } from "../version.ts";
import { noteBegin, upgradesOf, upgradeTo } from "./upgrade.ts";

export function getHealth({ daemon, res }: Call): void {
  // The uptime of a prepared sandbox counts from its claim.
  const startedAtMs = Math.max(daemon.startedAtMs, daemon.environment.ownedSinceMs);
  const uptimeSeconds = Math.max(0, Date.now() - startedAtMs) / 1000;
  const { count, last } = upgradesOf(daemon);
  sendJson(res, 200, {
    status: "ok",
    version: VERSION,
    gitCommit: VERSION,
    buildTime: BUILD_TIME,
    // The member name is part of the API; the runtime is Bun.
    goVersion: `bun ${bunVersion()}`,
    os: process.platform,
    arch: process.arch,
    uptime: durationText(uptimeSeconds),
    uptimeSeconds,
    upgradeCount: count,
    startedAt: new Date(startedAtMs).toISOString(),
    lastUpgrade: last,
  });
}

export async function upgrade(call: Call): Promise<void> {
  const body = await readJson(call);
  const version = field(body, "version", "string") || "latest";
  const baseUrl = field(body, "baseUrl", "string");
  noteBegin(call.daemon, version);
  call.res.once("finish", () => void upgradeTo(call.daemon, version, baseUrl));
  sendJson(call.res, 200, {
    message: "The upgrade has begun; see lastUpgrade in /health.",
    version,
    baseUrl: baseUrl ?? "",
  });
}

export function reloadEnvironment(call: Call): void {
  sendJson(call.res, 200, call.daemon.environment.reload());
}

export function listDrives({ daemon, res }: Call): void {
  sendJson(res, 200, { mounts: mountsIn(daemon.config.drivesFile) });
}

/** Refused: access to a drive is decided by the platform, which knows the drive's permissions. */
export function refuseMount(): void {
  throw new ApiError(
    422,
    "Drives are mounted by the platform: send this request to the sandbox's public address, not to the daemon inside.",
  );
}

function mountsIn(file: string | undefined): DriveMount[] {
  if (file === undefined) return [];
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
    return Array.isArray(parsed) ? (parsed as DriveMount[]) : [];
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw new ApiError(500, "The platform's list of mounted drives could not be read.");
  }
}

function durationText(seconds: number): string {
  const whole = Math.floor(seconds);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return `${hours > 0 ? `${hours}h` : ""}${hours > 0 || minutes > 0 ? `${minutes}m` : ""}${whole % 60}s`;
}
