/**
 * `sandboxd unpack JOB`: unpacks the archive on standard input and writes the answer, one line of JSON, to standard
 * output. The local driver starts it isolated; see `unpack/cage.ts` of that driver.
 */
import { writeAll } from "../unpack/bytes.ts";
import { type Job, runJob } from "../unpack/job.ts";

const [ARCHIVE, ANSWER] = [0, 1];

export async function runUnpackChild([job = ""]: string[]): Promise<void> {
  const answer = await runJob(JSON.parse(job) as Job, ARCHIVE);
  writeAll(ANSWER, Buffer.from(`${JSON.stringify(answer)}\n`));
}
