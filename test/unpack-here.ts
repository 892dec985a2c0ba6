/** Unpacks in this very process, as a machine without any isolation would: only the descriptors hold the boundary. */
import { closeSync, openSync } from "node:fs";
import { accepted, type Unpack, withLowers } from "../src/node/drivers/common/unpack-job.ts";
import { runJob, type UnpackAnswer } from "../src/unpack/job.ts";

const TIME_MAX_MS = 600_000;

export const unpackHere: Unpack = async ({ work, archive, target, lowers = [] }) => {
  const fd = openSync(archive, "r");
  try {
    const answer = await runJob({ target, timeMaxMs: TIME_MAX_MS, work: withLowers(work, lowers) }, fd);
    return accepted(answer as UnpackAnswer<typeof work.kind>, work.kind);
  } finally {
    closeSync(fd);
  }
};
