/** Tokens of private previews, as the management API writes them and the gateway checks them. */
import { createHash } from "node:crypto";
import type { Right, SubjectType } from "./caller.ts";

/** Who made a token, and with which right; kept in its state. A token ends with either. */
export interface MadeBy {
  subject: string;
  subjectType: SubjectType;
  right: Right | null;
}

/** Where a token is kept within its preview: found by its value, which itself is sealed. */
export const previewTokenSlot = (token: string): string => createHash("sha256").update(token).digest("hex");

export const isExpiredToken = ({ spec }: { spec: Record<string, unknown> }, nowMs: number): boolean =>
  typeof spec.expiresAt === "string" && Date.parse(spec.expiresAt) <= nowMs;
