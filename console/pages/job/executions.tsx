/** The executions of a job: run tasks, see how far they are. */
import { useState } from "preact/hooks";
import { type Execution, runTasks, useExecutions } from "../../api/executions.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, durationOf } from "../../lib/format.ts";
import { here, queryOf, setQuery } from "../../lib/location.ts";
import { toneOf } from "../../lib/tones.ts";
import { fromYaml } from "../../lib/yaml.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { ExecutionView } from "./execution.tsx";

const BEGIN = "- {}\n";

export function ExecutionsTab({ workload }: { workload: Workload }) {
  const id = queryOf("execution");
  return id === "" ? <Executions job={workload} /> : <ExecutionView key={id} job={workload} id={id} />;
}

function Executions({ job }: { job: Workload }) {
  const { workspace, name } = job;
  const { data, error } = useExecutions(job);
  const [tasks, setTasks] = useState(BEGIN);
  const refusal = useRefusal(workspace, "jobExecutionCreate");
  const start = useAction(async () => setQuery({ execution: await runTasks(job, await fromYaml(tasks)) }));
  const failure = error ?? start.error;
  const linkOf = (id: string): string => `${here.value.pathname}?tab=executions&execution=${encodeURIComponent(id)}`;
  return (
    <div class="stack">
      <Field
        label="Tasks"
        lines={3}
        value={tasks}
        onInput={setTasks}
        hint="A YAML list: one entry of arguments for each task."
      />
      <div class="row">
        <Button kind="main" busy={start.busy} unable={refusal} onClick={() => void start.run(null)}>
          Run
        </Button>
      </div>
      {failure ? <Failure error={failure} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? <Blank title="It has not run yet" line={`berth run job ${name} -w ${workspace}`} /> : null}
      {data?.length ? (
        <Table
          label="Executions"
          rows={data}
          keyOf={({ metadata }) => metadata.id}
          columns={[
            {
              title: "Execution",
              look: "name mono",
              cell: ({ metadata: { id } }) => <a href={linkOf(id)}>{id}</a>,
            },
            { title: "Status", cell: ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge> },
            { title: "Tasks", look: "wide", cell: statsOf },
            { title: "Took", look: "wide age", cell: ({ metadata }) => tookOf(metadata) },
            { title: "Age", look: "age", cell: ({ metadata }) => ageOf(metadata.createdAt) },
          ]}
        />
      ) : null}
    </div>
  );
}

const tookOf = ({ startedAt, completedAt }: Execution["metadata"]): string =>
  startedAt && completedAt ? durationOf(startedAt, completedAt) : "";

const statsOf = ({ stats: { total, success, failure, running } }: Execution): string =>
  [
    `${success.toLocaleString("en")} of ${total.toLocaleString("en")} done`,
    ...(running > 0 ? [`${running} running`] : []),
    ...(failure > 0 ? [`${failure.toLocaleString("en")} failed`] : []),
  ].join(", ");
