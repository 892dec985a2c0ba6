/** Tokens of private previews, as the management API writes them and the gateway checks them. */
import { createHash } from "node:crypto";
import type { Right, SubjectType } from "./caller.ts";

/** The maker of a token and the right used, kept in the token's state. A token ends with either. */
export interface MadeBy {
  subject: string;
  subjectType: SubjectType;
  right: Right | null;
}

/** The slot of a token within its preview: a hash of its value, which itself is sealed. */
export const previewTokenSlot = (token: string): string => createHash("sha256").update(token).digest("hex");

type Token = { spec: Record<string, unknown> };

/** When the token expires; Infinity = never. */
export const tokenEndOf = ({ spec }: Token): number =>
  typeof spec.expiresAt === "string" ? Date.parse(spec.expiresAt) : Number.POSITIVE_INFINITY;

export const isExpiredToken = (token: Token, nowMs: number): boolean => tokenEndOf(token) <= nowMs;
