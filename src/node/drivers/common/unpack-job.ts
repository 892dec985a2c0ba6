/** What drivers share that unpack archives in a cage: the request, the limits, and how the answer is read. */
import { PlatformError } from "../../../contract/errors.ts";
import type { Answers, Job, UnpackAnswer, WorkKind } from "../../../unpack/job.ts";
import type { CallOptions } from "../../dial/endpoint.ts";

export interface UnpackRequest<Kind extends WorkKind = WorkKind> {
  work: Extract<Job["work"], { kind: Kind }>;
  /** Path of the archive file. */
  archive: string;
  /** Path of an empty folder. */
  target: string;
  /** Folders that the job may read: the layers below, in the order of `work.lowers`, whose paths are set here. */
  lowers?: readonly string[];
}

export type Unpack = <Kind extends WorkKind>(
  request: UnpackRequest<Kind>,
  options?: CallOptions,
) => Promise<Answers[Kind]>;

/** Memory limit of a job: buffers, and the names of the folders it made. */
export const MEMORY_MB = 1024;
/** Time limit of a job; the largest images take minutes on a slow disk. */
export const TIME_MAX_MS = 30 * 60_000;
/** Extra time for the job to report the timeout itself, before it is killed. */
export const TIME_GRACE_MS = 10_000;
/** Each job keeps a processor and the disk busy; more at once would only use memory. */
export const JOBS_AT_ONCE = 4;
/** Longest answer of a job: at most 16 MB of names, as JSON. */
export const ANSWER_BYTES_MAX = 64 * 1024 ** 2;

/** The job's work with the folders below as the job sees them. */
export const withLowers = (work: Job["work"], paths: readonly string[]): Job["work"] =>
  work.kind === "layers"
    ? { ...work, lowers: work.lowers.map((lower, index) => ({ ...lower, path: paths[index] ?? "" })) }
    : work;

/** The answer is the last line; earlier lines come from the runtime and are for the operator. */
export function answerIn<Kind extends WorkKind>(text: string): UnpackAnswer<Kind> {
  const line = text.trimEnd().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line) as UnpackAnswer<Kind>;
  } catch (cause) {
    const message = "The process that unpacks archives ended without an answer.";
    throw new PlatformError("internal", message, { cause, detail: { said: text.slice(-SAID_MAX) } });
  }
}

const SAID_MAX = 2000;

/** Returns the result, or throws the refusal for the sender of the archive. */
export function accepted<Kind extends WorkKind>(answer: UnpackAnswer<Kind>, kind: WorkKind): Answers[Kind] {
  if (!("refusal" in answer)) return answer;
  const { kind: why, reason } = answer.refusal;
  const refused = kind === "files" ? "The archive was refused" : "The image is refused";
  throw new PlatformError(
    "bad_request",
    `${why === "unreadable" ? "The archive cannot be read" : refused}: ${reason}.`,
  );
}
