/**
 * Façades: addresses at which the platform speaks the API of another product, so that a program written for that
 * product needs no change but its base address. Each has a first path segment of its own.
 */
import type { FACADE_NAMES } from "../lib/schemas/facade-settings.ts";

export type FacadeName = (typeof FACADE_NAMES)[number];

/** Where a façade begins behind its first segment; every other path there belongs to no façade. */
export const FACADES: Record<FacadeName, string> = { openai: "/v1", anthropic: "/v1", e2b: "" };

export const isFacade = (word: string): word is FacadeName => Object.hasOwn(FACADES, word);
