/**
 * Fires schedules: wakes the sandbox, starts the process, stores the result. A slot is claimed in the store before the
 * process is started, so only one of several servers fires it. A server that dies after the claim loses one firing and
 * never fires twice.
 */
import { restoreSecrets } from "../../contract/secret-fields.ts";
import { uuidv7 } from "../../lib/ids.ts";
import { SECOND_MS, toIso } from "../../lib/time/clock.ts";
import { LATE_MAX_MS } from "../../lib/time/cron.ts";
import { ofKind } from "../../store/resources/resource.ts";
import type { Platform, ReconcileContext, Reconciler } from "../port.ts";
import { awake } from "../sandbox/awake.ts";
import { askInside } from "../sandbox/inside.ts";
import { scheduleExecution } from "../schedule-execution/kind.ts";
import { EXECUTIONS_KEPT_DEFAULT, type Schedule, schedule as scheduleKind } from "./kind.ts";
import { planSchedule, type ScheduleStep } from "./plan.ts";

const SUBMIT_MS = 10 * SECOND_MS;
const REASON_MAX = 500;
/** Execution records kept per sandbox; one-off schedules leave theirs behind. */
const EXECUTIONS_MAX = 1000;

interface Outcome {
  statusCode: number;
  processName: string;
  error?: string;
}

export const scheduleReconciler: Reconciler<null, ScheduleStep, Schedule> = {
  observe: async () => null,
  plan: (schedule, _observed, nowMs) => planSchedule(schedule, nowMs),
  async act(step, schedule, context) {
    if (!(await claim(step.slot, schedule, context))) return;
    const outcome = step.do === "fire" ? await fire(schedule, context) : MISSED;
    await writeDown(schedule, step.slot, outcome, context.deps);
  },
};

const MISSED: Outcome = {
  statusCode: 0,
  processName: "",
  error: `Missed: the platform did not run at that time, nor within ${LATE_MAX_MS / SECOND_MS} seconds after it.`,
};

async function claim(slot: number, schedule: Schedule, { record }: ReconcileContext<Schedule>): Promise<boolean> {
  let claimed = false;
  await record((current) => {
    const { lastSlot = 0 } = current.state;
    claimed = current.deletedAt === null && current.generation === schedule.generation && lastSlot < slot;
    return claimed ? { state: { ...current.state, lastSlot: slot } } : null;
  });
  return claimed;
}

async function fire(schedule: Schedule, { deps, signal }: ReconcileContext<Schedule>): Promise<Outcome> {
  const { parent: uid, workspace } = schedule;
  const spec = structuredClone(schedule.spec);
  restoreSecrets({ spec }, scheduleKind.secrets, deps.store.resources.secretsOf(schedule));
  const { input } = spec;
  // Counts as an open request, so that the sandbox does not fall asleep between waking and starting the process.
  const end = deps.activity.begin(uid);
  try {
    const endpoint = await awake(workspace, uid, deps, signal);
    const reply = await askInside(endpoint, {
      door: "api",
      method: "POST",
      path: "/process",
      body: { ...input, waitForCompletion: false },
      answerMs: SUBMIT_MS,
    });
    return outcomeOf(reply.status, reply.text, input);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { statusCode: 0, processName: input.name ?? "", error: reason.slice(0, REASON_MAX) };
  } finally {
    end();
  }
}

function outcomeOf(statusCode: number, text: string, { name = "" }: Schedule["spec"]["input"]): Outcome {
  let answer: { name?: unknown; error?: unknown } = {};
  try {
    answer = JSON.parse(text) as typeof answer;
  } catch {
    // The body is optional: the HTTP status alone decides.
  }
  const processName = typeof answer.name === "string" ? answer.name.slice(0, 128) : name;
  if (statusCode < 400) return { statusCode, processName };
  return { statusCode, processName, error: String(answer.error ?? text).slice(0, REASON_MAX) };
}

async function writeDown(
  schedule: Schedule,
  slot: number,
  outcome: Outcome,
  { store, clock }: Platform,
): Promise<void> {
  const { workspace, parent, name, uid } = schedule;
  const { input, maxExecutions = EXECUTIONS_KEPT_DEFAULT, type } = schedule.spec;
  const executionUid = uuidv7(clock.now());
  await store.write(async (tx) => {
    const sandbox = await store.resources.modify(tx, workspace, parent, () => null);
    if (!sandbox || sandbox.retired || sandbox.deletedAt !== null) return;
    await store.resources.insert(tx, {
      workspace,
      parent,
      kind: scheduleExecution.name,
      uid: executionUid,
      name: executionUid,
      metadata: {},
      spec: { scheduleId: name, executedAt: toIso(slot), timeout: input.timeout ?? 0, ...outcome },
      secrets: {},
      state: {},
      status: null,
      events: [],
      revision: false,
      actor: schedule.updatedBy,
      settled: true,
    });
    if (type === "cron") await keepNewest(uid, maxExecutions);
    else await store.resources.remove(tx, workspace, uid);

    async function keepNewest(of: string, count: number): Promise<void> {
      let dropped: string[] = [];
      await store.resources.modify(tx, workspace, of, (current) => {
        const all = [...(ofKind(scheduleKind, current).state.executions ?? []), executionUid];
        dropped = all.slice(0, -count);
        return { state: { ...current.state, executions: all.slice(-count) } };
      });
      for (const each of dropped) await store.resources.remove(tx, workspace, each);
    }
  });
  if (type !== "cron") await forgetOldest(schedule, { store });
}

async function forgetOldest({ workspace, parent }: Schedule, { store }: Pick<Platform, "store">): Promise<void> {
  const all = await store.resources.childrenOf(workspace, parent, scheduleExecution.name);
  for (const { uid } of all.slice(0, -EXECUTIONS_MAX)) await store.resources.delete(workspace, uid);
}
