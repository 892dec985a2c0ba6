/** The file that gives a prepared sandbox its owner. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { SandboxClaim } from "../../contract/sandbox-wire.ts";

/** Null while the file is absent or blank (no owner yet) or half written. */
export function readClaim(file: string): SandboxClaim | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as SandboxClaim;
  } catch {
    return null;
  }
}

/** False where the sandbox has another owner already. The same claim may come twice: its answer may have been lost. */
export function saveClaim(file: string, claim: SandboxClaim): boolean {
  const text = JSON.stringify(claim);
  const before = readClaim(file);
  if (before !== null) return JSON.stringify(before) === text;
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return true;
}
