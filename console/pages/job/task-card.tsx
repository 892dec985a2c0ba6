/** One task: how it went, and what it wrote. */
import { call } from "../../api/call.ts";
import { type Job, type Task, useTask } from "../../api/executions.ts";
import { useAnswer } from "../../api/query.ts";
import { durationOf, timeOf } from "../../lib/format.ts";
import type { TaskState } from "../../lib/task-grid.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Code } from "../../ui/code.tsx";
import { Card, Facts } from "../../ui/facts.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";

export interface TaskCardProps {
  job: Job;
  execution: string;
  index: number;
  state: TaskState;
}

export function TaskCard({ job, execution, index, state }: TaskCardProps) {
  const { data: task, error } = useTask(job, execution, index, state);
  const startedAt = task?.metadata.startedAt ?? "";
  return (
    <Card title={`Task ${index}`}>
      <div class="stack">
        {error ? <Failure error={error} /> : null}
        {task === undefined && !error ? <Loading /> : null}
        {task ? <TaskFacts task={task} /> : null}
        {task && startedAt !== "" ? (
          <TaskLog key={`${index} ${state}`} job={job} execution={execution} index={index} task={task} />
        ) : null}
      </div>
    </Card>
  );
}

function TaskFacts({ task: { status, metadata, conditions } }: { task: Task }) {
  const { startedAt = "", completedAt = "" } = metadata;
  const last = conditions.at(-1);
  return (
    <Facts
      facts={[
        ["Status", <Badge tone={toneOf(status)}>{status}</Badge>],
        ["Why", last?.message ?? ""],
        ["Started", timeOf(startedAt)],
        [completedAt === "" ? "Runs for" : "Took", startedAt === "" ? "" : durationOf(startedAt, completedAt)],
      ]}
    />
  );
}

/** Clocks of nodes differ a little, and the last lines come after the end. */
const AROUND_MS = 60_000;
const EVERY_MS = 2000;
const LINES_MAX = "1000";

type Lines = Readonly<Record<string, { logs?: readonly { timestamp: string; message: string }[] }>>;

function TaskLog({ job, execution, index, task }: { job: Job; execution: string; index: number; task: Task }) {
  const { startedAt = "", completedAt } = task.metadata;
  const { data, error } = useAnswer({
    key: ["task-log", job.workspace, job.name, execution, index],
    everyMs: completedAt === undefined ? EVERY_MS : undefined,
    ask: async (signal) => {
      const query = {
        ...{ resourceType: "jobs", workloadIds: job.name, executionId: execution, taskId: String(index) },
        start: utc(Date.parse(startedAt) - AROUND_MS),
        ...(completedAt === undefined ? {} : { end: utc(Date.parse(completedAt) + AROUND_MS) }),
        limit: LINES_MAX,
      };
      const answer = await call<Lines>({ path: "/observability/logs", query, workspace: job.workspace, signal });
      return Object.values(answer)
        .flatMap(({ logs = [] }) => logs)
        .reverse()
        .map(({ message }) => message)
        .join("\n");
    },
  });
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  return data === "" ? <p class="quiet">It wrote nothing.</p> : <Code text={data} noun="The log" />;
}

const utc = (ms: number): string => new Date(ms).toISOString();
