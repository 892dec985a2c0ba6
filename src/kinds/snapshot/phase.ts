/** How far a snapshot is, as its record tells; the same for snapshots of sandboxes and of volumes. */
import { PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";
import type { SnapshotState } from "./copy-rules.ts";

const REASON_MAX = 500;

export const newSnapshotId = (): string => `snap_${randomWord(20)}`;

export const phaseOf = ({ state }: { state: SnapshotState }): "pending" | "ready" | "failed" =>
  state.phase ?? "pending";

/** Only a PlatformError's message is meant for callers; other driver errors go to the log. */
export const reasonOf = (error: unknown): string =>
  error instanceof PlatformError ? error.message.slice(0, REASON_MAX) : "The files could not be copied.";
