/** Executions that a cron trigger starts. */
import { PlatformError } from "../../contract/errors.ts";
import { type Trigger, triggerNamed } from "../../contract/triggers.ts";
import type { DeliveryLine } from "../../store/deliveries/delivery.ts";
import { TRIGGER_CAUSE } from "../../store/executions/callback.ts";
import { noteEvent } from "../../store/resources/note-event.ts";
import type { Platform } from "../port.ts";
import { createExecution, type ExecutionRequest } from "./executions.ts";

const AT_ONCE_MAX = 16;
const OF_ONE_MAX = 1;

export const executionLine = (deps: Platform): DeliveryLine => ({
  phase: "execution",
  atOnceMax: AT_ONCE_MAX,
  ofOneMax: OF_ONE_MAX,
  async deliver({ id, workspace, uid, trigger_id }) {
    const job = await deps.store.resources.getByUid(workspace, uid);
    const trigger = job && triggerNamed(job, trigger_id);
    if (!job || !trigger || job.deletedAt !== null) return { do: "finish" };
    try {
      // The slot is unique, so repeated attempts create one execution.
      await createExecution(job, { ...asTriggered(trigger), slot: `${TRIGGER_CAUSE}${id}` }, deps);
    } catch (error) {
      if (!(error instanceof PlatformError) || error.status >= 500) throw error;
      const message = `Trigger '${trigger_id}' was skipped: ${error.message}`;
      await noteEvent(deps.store, job, { type: "skipped", message });
    }
    return { do: "finish" };
  },
});

type Triggered = Omit<ExecutionRequest, "slot" | "tasks"> & { tasks: Record<string, unknown>[] };

/** The execution request that a trigger's configuration describes. */
export const asTriggered = ({ id, configuration = {} }: Trigger): Triggered => ({
  tasks: configuration.tasks?.length ? configuration.tasks : [{}],
  maxRetries: configuration.retry,
  timeoutS: configuration.timeout,
  cause: `${TRIGGER_CAUSE}${id}`,
  createdBy: `trigger ${id}`,
});
