import { PlatformError } from "../../../contract/errors.ts";
import type { Limits } from "../../workload.ts";

const MB = 1024 * 1024;

/** Refusal of a memory limit below what the processes of a workload hold. */
export const belowUse = ({ memoryMb }: Limits, heldBytes: number): PlatformError =>
  new PlatformError(
    "conflict",
    `${Math.ceil(heldBytes / MB)} MB of memory are in use, and ${memoryMb} MB were asked for. Pages of files are not counted.`,
  );
