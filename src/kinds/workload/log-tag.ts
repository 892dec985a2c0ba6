import type { LogSource, LogTag } from "../../contract/log-line.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { kindNamed } from "../index.ts";

/** Whose log the output of a workload of this resource is. */
export const logTag = (
  { workspace, kind, name, uid }: Resource,
  source: LogSource,
  more: Pick<LogTag, "revision" | "executionId" | "taskId"> = {},
): LogTag => ({ workspace, plural: kindNamed(kind).plural, name, uid, source, ...more });
