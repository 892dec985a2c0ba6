/** Tokens of private previews, as the management API writes them and the gateway checks them. */
import { createHash } from "node:crypto";

/** Where a token is kept within its preview: found by its value, which itself is sealed. */
export const previewTokenSlot = (token: string): string => createHash("sha256").update(token).digest("hex");

export const isExpiredToken = ({ spec }: { spec: Record<string, unknown> }, nowMs: number): boolean =>
  typeof spec.expiresAt === "string" && Date.parse(spec.expiresAt) <= nowMs;
