/** Additional error members that sandbox clients read when a create or an update fails. */
import type { ErrorCode, PlatformError } from "../../contract/errors.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { FailedCall } from "../port.ts";

const WORDS: Partial<Record<ErrorCode, string>> = {
  already_exists: "SANDBOX_ALREADY_EXISTS",
  invalid_field: "INVALID_REQUEST",
  unknown_member: "INVALID_REQUEST",
  bad_request: "INVALID_REQUEST",
  usage_limit_exceeded: "QUOTA_EXCEEDED",
};

const STEPS: Record<number, string> = { 400: "validation", 402: "quota", 409: "conflict", 429: "quota", 504: "start" };

export function explainSandboxFailure(error: PlatformError, failed: FailedCall): Record<string, unknown> {
  const { verb } = failed.operation;
  if (verb !== "create" && verb !== "update") return {};
  return {
    // For a failed update, clients read the HTTP status instead of a code word.
    ...(verb === "create" ? { code: error.body?.code ?? WORDS[error.code] ?? error.code.toUpperCase() } : {}),
    ...(error.detail?.status === "DEPLOYING" ? { reason: "CREATION_IN_PROGRESS" } : {}),
    sandbox_name: failed.params.sandboxName ?? nameIn(failed.body),
    status_code: error.status,
    step: STEPS[error.status] ?? "creation",
    timestamp: toIso(failed.nowMs),
    workspace: failed.workspace,
  };
}

function nameIn(body: unknown): string {
  const { metadata } = (body ?? {}) as { metadata?: { name?: unknown } | null };
  return typeof metadata?.name === "string" ? metadata.name.slice(0, 64) : "";
}
