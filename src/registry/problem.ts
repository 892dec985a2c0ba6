/** Why an image cannot be pulled. The message names the image, the registry and the reason, for whoever asked for it. */
import { PlatformError } from "../contract/errors.ts";
import { type Reference, referenceText } from "../contract/image-reference.ts";

export type Reason =
  | "not_found"
  | "unauthorized"
  | "wrong_platform"
  | "rate_limited"
  | "unreachable"
  | "refused"
  | "broken"
  | "too_large";

/** A failure of one request, without the name of the image. The text completes "cannot be pulled: ". */
export class RegistryProblem extends Error {
  readonly reason: Reason;
  /** How long the registry asks to wait. */
  readonly waitMs: number | undefined;

  constructor(reason: Reason, text: string, options: { waitMs?: number; cause?: unknown } = {}) {
    super(text, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.waitMs = options.waitMs;
  }

  /** Whether the same request may succeed a moment later. */
  get isTransient(): boolean {
    return this.reason === "unreachable" || this.reason === "rate_limited";
  }
}

/** The same failure for whoever named the image. Final for a workload: its record says why. */
export class PullRefused extends PlatformError {
  readonly reason: Reason;

  constructor(reference: Reference, { reason, message, cause }: RegistryProblem) {
    super("unprocessable", `The image ${referenceText(reference)} cannot be pulled: ${message}.`, {
      cause,
      detail: { registry: reference.registry, reason },
    });
    this.reason = reason;
  }
}

export const broken = (text: string, cause?: unknown): RegistryProblem =>
  new RegistryProblem("broken", text, cause === undefined ? {} : { cause });
