/**
 * Behaviour versions. The core knows only the newest one; each older version is a step that lifts an old request to the
 * next version and lowers the response back. A new version is one file here and one line in each list.
 */

import { PlatformError } from "../errors.ts";
import type { Operation } from "../operation.ts";
import { bareLists } from "./2026-04-28.ts";
import type { Version, VersionStep } from "./version.ts";
import { DEFAULT_VERSION, VERSIONS } from "./version.ts";

const STEPS: readonly VersionStep[] = [bareLists];

export function resolveVersion(header: string | undefined): Version {
  if (header === undefined || header === "") return DEFAULT_VERSION;
  const known = VERSIONS.find((version) => version === header);
  if (known) return known;
  throw new PlatformError(
    "invalid_api_version",
    `Version '${header.slice(0, 64)}' is not supported. Valid versions: ${VERSIONS.join(", ")}.`,
  );
}

export function liftQuery(
  version: Version,
  operation: Operation,
  query: Record<string, string>,
): Record<string, string> {
  return stepsAbove(version).reduce((lifted, step) => step.liftQuery?.(operation, lifted) ?? lifted, query);
}

/** Sentences about parameters that the asked version ignores. */
export const ignoredParameters = (
  version: Version,
  operation: Operation,
  query: Readonly<Record<string, string>>,
): string[] => stepsAbove(version).flatMap((step) => step.warn?.(operation, query) ?? []);

export function lower(version: Version, operation: Operation, response: unknown): unknown {
  return stepsAbove(version).reduceRight<unknown>(
    (lowered, step) => (step.lower ? step.lower(operation, lowered) : lowered),
    response,
  );
}

const STEPS_ABOVE = new Map(VERSIONS.map((version) => [version, STEPS.filter((step) => step.since > version)]));

const stepsAbove = (version: Version): readonly VersionStep[] => STEPS_ABOVE.get(version) ?? [];
