/**
 * Reads the configuration file that a driver writes for one sandbox. An invalid file stops the start with the reason.
 */
import { readFileSync, statSync } from "node:fs";
import type { DoorConfig, SandboxdConfig } from "../contract/sandbox-wire.ts";

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isPath: Check = (value) => typeof value === "string" && value.startsWith("/");
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isEnv: Check = (value) => isRecord(value) && Object.values(value).every(isText);
const isUser: Check = (value) => isRecord(value) && isCount(value.uid) && isCount(value.gid);
const isGate: Check = (value) => isRecord(value) && isCount(value.port) && isText(value.token) && value.token !== "";
const isRemote: Check = (value) => isGate(value) && isRecord(value) && isText(value.host) && isText(value.purpose);
const isDoor: Check = (value) =>
  isRecord(value) &&
  (value.remote === undefined ? value.socket === undefined || isPath(value.socket) : isRemote(value.remote)) &&
  isText(value.listen) &&
  parseListen(String(value.listen)) !== null;
const isExec: Check = (value) =>
  isRecord(value) &&
  isPath(value.statusFile) &&
  Array.isArray(value.argv) &&
  value.argv.length > 0 &&
  value.argv.every(isText);

interface Field {
  check: Check;
  required?: true;
}

const FIELDS: Record<keyof SandboxdConfig, Field> = {
  apiSocket: { check: isPath, required: true },
  portSocket: { check: isPath, required: true },
  controlSocket: { check: isPath, required: true },
  stateDir: { check: isPath, required: true },
  logDir: { check: isPath },
  workDir: { check: isPath },
  env: { check: isEnv },
  user: { check: isUser },
  userFile: { check: isPath },
  claimFile: { check: isPath },
  names: { check: (value) => typeof value === "string" && parseListen(value) !== null },
  doors: { check: (value) => Array.isArray(value) && value.every(isDoor) },
  gate: { check: isGate },
  lastOutput: { check: (value) => typeof value === "boolean" },
  readyFd: { check: isCount },
  drivesFile: { check: isPath },
  metadataFile: { check: isPath },
  awakeFifo: { check: isPath },
  upgradeFile: { check: isPath },
  asleepFile: { check: isPath },
  generation: { check: isText },
  generationFile: { check: isPath },
  graceMs: { check: isCount },
  processLogs: { check: (value) => isRecord(value) && isPath(value.stdout) && isPath(value.stderr) },
  processesMax: { check: isCount },
  exec: { check: isExec },
};

/** The part of `SandboxClaim` that can come by the control socket. */
const CLAIM_FIELDS: Record<string, Field> = {
  env: FIELDS.env,
  workDir: FIELDS.workDir,
  doors: { check: (value) => Array.isArray(value) && value.every(isRemote) },
};

/** Null for a claim that can be kept. */
export const mistakeInClaim = (value: unknown): string | null => mistakeIn(value, CLAIM_FIELDS);

export function readConfig(file: string): SandboxdConfig {
  const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
  const wrong = mistakeIn(parsed, FIELDS);
  if (wrong) throw new Error(`${file}: ${wrong}`);
  return withOwner(parsed as SandboxdConfig);
}

/** Root is the user of init, which needs no entry. */
function withOwner({ userFile, ...config }: SandboxdConfig): SandboxdConfig {
  if (userFile === undefined) return config;
  const { uid, gid } = statSync(userFile);
  return uid === 0 && gid === 0 ? config : { ...config, user: { uid, gid } };
}

function mistakeIn(value: unknown, fields: Record<string, Field>): string | null {
  if (!isRecord(value)) return "not a JSON object.";
  const unknown = Object.keys(value).find((key) => !(key in fields));
  if (unknown !== undefined) return `unknown key "${unknown}".`;
  const wrong = Object.entries(fields).find(([key, { check, required }]) =>
    value[key] === undefined ? required : !check(value[key]),
  );
  return wrong ? `"${wrong[0]}" is missing or malformed.` : null;
}

/** Parses "127.0.0.1:8081" or "[::1]:8081". Only loopback: a door must not be reachable from another machine. */
export function parseListen(listen: DoorConfig["listen"]): { host: string; port: number } | null {
  const match = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\]):(\d{1,5})$/.exec(listen);
  const port = Number(match?.[2]);
  if (!match?.[1] || port > 65535) return null;
  return { host: match[1].replace(/^\[|\]$/g, ""), port };
}
