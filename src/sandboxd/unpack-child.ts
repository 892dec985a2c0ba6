/**
 * `sandboxd unpack JOB [ARCHIVE]`: unpacks the archive at that path, or on standard input, and writes the answer, one
 * line of JSON, to standard output. Drivers start it isolated: `drivers/local/unpack/cage.ts` with the archive as a
 * descriptor, `drivers/docker/storage/unpacking.ts` with the archive as a file of its container.
 */
import { openSync } from "node:fs";
import { writeAll } from "../unpack/bytes.ts";
import { type Job, runJob } from "../unpack/job.ts";

const [STDIN, ANSWER] = [0, 1];

export async function runUnpackChild([job = "", archive]: string[]): Promise<void> {
  const answer = await runJob(JSON.parse(job) as Job, archive === undefined ? STDIN : openSync(archive, "r"));
  writeAll(ANSWER, Buffer.from(`${JSON.stringify(answer)}\n`));
}
