/** An execution: every task as a cell or a bar, filtered by state; one task in detail; rerun and cancel. */
import "./job.css";
import { useState } from "preact/hooks";
import { cancelExecution, type Job, rerunFailed, useExecution, useTaskGrid } from "../../api/executions.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { ageOf, durationOf, spanText } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { isOver, STATES, stateAt, type TaskGrid, type TaskState } from "../../lib/task-grid.ts";
import { labelOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { bars, cells, spanOf } from "./pictures.ts";
import { TaskCard } from "./task-card.tsx";
import { TaskPicture } from "./task-picture.tsx";

export function ExecutionView({ job, id }: { job: Job; id: string }) {
  const isTimeline = queryOf("view") === "timeline";
  const { data: execution, error } = useExecution(job, id);
  const { data: grid, error: noGrid } = useTaskGrid(job, id, isTimeline);
  const noRerun = useRefusal(job.workspace, "jobExecutionRerun");
  const noCancel = useRefusal(job.workspace, "jobExecutionDelete");
  const rerun = useAction(async () => {
    const next = await rerunFailed(job, id);
    say("The failed tasks run again, as an execution of their own.");
    setQuery({ execution: next, state: "", task: "" });
  });
  const cancel = useAction(async () => {
    await cancelExecution(job, id);
    say("The execution is being cancelled.");
  });
  const failure = error ?? noGrid ?? rerun.error ?? cancel.error;
  const { createdAt = "", startedAt = createdAt, completedAt } = execution?.metadata ?? {};
  return (
    <div class="stack">
      <div class="task-head">
        <Button kind="bare" onClick={() => setQuery({ execution: "", state: "", task: "", view: "" })}>
          All executions
        </Button>
        <code>{id}</code>
        {grid ? <Badge tone={toneOf(grid.status)}>{grid.status}</Badge> : null}
        <span class="quiet grow">
          {execution === undefined
            ? ""
            : `${ageOf(createdAt)} ago, ${completedAt ? "took" : "runs for"} ${durationOf(startedAt, completedAt ?? "")}`}
        </span>
        <Button onClick={() => setQuery({ view: isTimeline ? "" : "timeline" })}>
          <Icon name={isTimeline ? "grid" : "job"} />
          {isTimeline ? "Grid" : "Timeline"}
        </Button>
        <Button
          busy={rerun.busy}
          unable={noRerun ?? (grid?.counts.failed ? null : "No task has failed")}
          onClick={() => void rerun.run(null)}
        >
          <Icon name="play" />
          Rerun failed
        </Button>
        <Button
          kind="danger"
          busy={cancel.busy}
          unable={noCancel ?? (grid && isOver(grid) ? "It has ended" : null)}
          onClick={() => void cancel.run(null)}
        >
          <Icon name="stop" />
          Cancel
        </Button>
      </div>
      {failure ? <Failure error={failure} /> : null}
      {grid === undefined && !failure ? <Loading /> : null}
      {grid ? <Tasks job={job} id={id} grid={grid} isTimeline={isTimeline} createdAt={createdAt} /> : null}
    </div>
  );
}

interface TasksProps {
  job: Job;
  id: string;
  grid: TaskGrid;
  isTimeline: boolean;
  createdAt: string;
}

function Tasks({ job, id, grid, isTimeline, createdAt }: TasksProps) {
  const only = STATES.find((state) => state === queryOf("state")) ?? null;
  const [chosen, setChosen] = useState<number | null>(queryOf("task") === "" ? null : Number(queryOf("task")));
  const nowMs = isOver(grid) || createdAt === "" ? 0 : Date.now() - Date.parse(createdAt);
  const choose = (task: number): void => {
    setChosen(task);
    setQuery({ task: String(task) });
  };
  return (
    <>
      <StateFilter counts={grid.counts} only={only} />
      <TaskPicture
        key={isTimeline ? "bars" : "cells"}
        grid={grid}
        only={only}
        chosen={chosen}
        onChoose={choose}
        pictureOf={isTimeline ? bars(nowMs) : cells}
        {...(isTimeline ? { axis: ["0 s", spanText(Math.max(nowMs, spanOf(grid)))] } : {})}
      />
      {chosen === null || chosen >= grid.total ? (
        <p class="quiet">Choose a task to see how it went and what it wrote. Arrows move between tasks.</p>
      ) : (
        <TaskCard job={job} execution={id} index={chosen} state={stateAt(grid, chosen)} />
      )}
    </>
  );
}

const StateFilter = ({ counts, only }: { counts: Readonly<Record<TaskState, number>>; only: TaskState | null }) => (
  <fieldset class="states">
    <legend class="hidden-visually">Show tasks that are</legend>
    {STATES.filter((state) => counts[state] > 0 || state === only).map((state) => (
      <button
        key={state}
        type="button"
        class="state"
        aria-pressed={state === only}
        onClick={() => setQuery({ state: state === only ? "" : state })}
      >
        <span class={`swatch ${state}`} />
        {labelOf(state)}
        <b>{counts[state].toLocaleString("en")}</b>
      </button>
    ))}
  </fieldset>
);
