/**
 * The URL that a task reads its arguments from. It needs no credentials: its token is unguessable, belongs to one task,
 * and works only while that task runs.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { notFound } from "../../contract/errors.ts";
import { type Implementation, implement, type Platform } from "../port.ts";
import { executionData } from "./operations.ts";

/** In an execution with more tasks, a task reads only its own arguments: n tasks reading n arguments grow with n². */
const WHOLE_LIST_MAX = 1000;

export const dataPath = (
  deps: Pick<Platform, "keyFor">,
  task: { job: string; executionId: string; index: number },
): string => `/jobs/${task.job}/executions/${task.executionId}/data/${tokenOf(deps, task)}`;

export const executionDataHandler: Implementation = implement(executionData, async ({ params }, deps) => {
  const { executionId = "", token = "" } = params;
  const index = Number(/^(\d{1,9})\./.exec(token)?.[1] ?? Number.NaN);
  const refused = notFound("What this address led to");
  if (!Number.isInteger(index) || !isSame(token, tokenOf(deps, { executionId, index }))) throw refused;
  const { executions } = deps.store;
  const [execution, [task]] = await Promise.all([
    executions.getAcrossWorkspaces(executionId),
    executions.tasksOf(executionId, index, 1),
  ]);
  if (!execution || task?.status !== "running") throw refused;
  if (execution.total <= WHOLE_LIST_MAX)
    return { tasks: await executions.argumentsOf(executionId, 0, execution.total) };
  const tasks: unknown[] = new Array(index).fill(null);
  return { tasks: [...tasks, ...(await executions.argumentsOf(executionId, index, 1))] };
});

const tokenOf = (
  deps: Pick<Platform, "keyFor">,
  { executionId, index }: { executionId: string; index: number },
): string =>
  `${index}.${createHmac("sha256", deps.keyFor("execution-data")).update(`${executionId}/${index}`).digest("base64url")}`;

function isSame(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
