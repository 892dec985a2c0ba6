/**
 * Unpacks archives of strangers in a container: without a network, without more than the rights to set owners, with the
 * archive and the daemon's executable read-only, and with the target as the only folder of the machine to write to.
 */

import type { Job, WorkKind } from "../../../../unpack/job.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import { Slots } from "../../common/slots.ts";
import type { Unpack, UnpackRequest } from "../../common/unpack-job.ts";
import {
  ANSWER_BYTES_MAX,
  accepted,
  answerIn,
  JOBS_AT_ONCE,
  MEMORY_MB,
  TIME_GRACE_MS,
  TIME_MAX_MS,
  withLowers,
} from "../../common/unpack-job.ts";
import type { DockerClient } from "../engine/docker-client.ts";
import type { ContainerMount } from "../workload/container.ts";
import { logsOf } from "../workload/container-logs.ts";
import { withHelper } from "../workload/helper.ts";

export interface CageOptions {
  client: DockerClient;
  owner: string;
  /** Id of an image with the libraries that the executable needs. */
  image: string;
  binDir: string;
  runtime?: string | undefined;
}

const [TARGET, ARCHIVE, PROGRAM, LOWER] = ["/target", "/archive", "/program", "/lower-"];
const LIMITS = { memoryMb: MEMORY_MB, cpus: 2, pids: 128 };

export function openCage({ client, owner, image, binDir, runtime }: CageOptions): Unpack {
  const slots = new Slots(JOBS_AT_ONCE);
  return <Kind extends WorkKind>(request: UnpackRequest<Kind>, { signal }: CallOptions = {}) =>
    slots.run(async () => {
      const timer = AbortSignal.timeout(TIME_MAX_MS + TIME_GRACE_MS);
      const either = AbortSignal.any([timer, ...(signal ? [signal] : [])]);
      const lowers = (request.lowers ?? []).map((path, index) => ({ path, at: `${LOWER}${index}` }));
      const work = withLowers(
        request.work,
        lowers.map(({ at }) => at),
      );
      const job: Job = { target: TARGET, timeMaxMs: TIME_MAX_MS, work };
      const mounts: ContainerMount[] = [
        { Type: "bind", Source: binDir, Target: PROGRAM, ReadOnly: true },
        { Type: "bind", Source: request.archive, Target: ARCHIVE, ReadOnly: true },
        { Type: "bind", Source: request.target, Target: TARGET, ReadOnly: false },
        ...lowers.map(({ path, at }) => ({ Type: "bind" as const, Source: path, Target: at, ReadOnly: true })),
      ];
      const argv = [`${PROGRAM}/sandboxd`, "unpack", JSON.stringify(job), ARCHIVE];
      const helper = { client, owner, image, argv, cage: { runtime, limits: LIMITS, mounts } };
      const text = await withHelper(helper, async (id) => {
        await client.text("POST", `/containers/${id}/start`, { signal: either });
        await client.text("POST", `/containers/${id}/wait`, { patient: true, signal: either });
        return logsOf(client, id, { lines: "all", bytesMax: ANSWER_BYTES_MAX });
      });
      return accepted<Kind>(answerIn<Kind>(text), request.work.kind);
    }, signal);
}
