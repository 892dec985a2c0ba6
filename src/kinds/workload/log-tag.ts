import type { LogSource, LogTag } from "../../contract/log-line.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { kindNamed } from "../index.ts";

/** The log that the output of this resource's workloads goes to. */
export const logTag = (
  { workspace, kind, name, uid }: Resource,
  source: LogSource,
  more: Pick<LogTag, "revision" | "executionId" | "taskId"> = {},
): LogTag => ({ workspace, plural: kindNamed(kind).plural, name, uid, source, ...more });
