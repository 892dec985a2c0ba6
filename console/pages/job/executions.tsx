/** The executions of a job: run tasks, see how far they are, cancel. */
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { queries, useAction, useAnswer } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf } from "../../lib/format.ts";
import { toneOf } from "../../lib/tones.ts";
import { fromYaml } from "../../lib/yaml.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { Tasks } from "./tasks.tsx";

interface Execution {
  metadata: { id: string; createdAt: string; startedAt?: string; completedAt?: string };
  status: string;
  stats: { total: number; success: number; failure: number; cancelled: number; running: number };
}

const EVERY_MS = 2000;
const BEGIN = "- {}\n";

export function ExecutionsTab({ workload: { workspace, name } }: { workload: Workload }) {
  const path = `/jobs/${encodeURIComponent(name)}/executions`;
  const key = ["executions", workspace, name];
  const { data, error } = useAnswer({
    key,
    everyMs: EVERY_MS,
    ask: async (signal) => (await call<{ data: Execution[] }>({ path, workspace, signal })).data,
  });
  const [tasks, setTasks] = useState(BEGIN);
  const [shown, setShown] = useState<string | null>(null);
  const start = useAction(async () => {
    await call({ method: "POST", path, body: { tasks: await fromYaml(tasks) }, workspace });
    await queries.invalidateQueries({ queryKey: key });
  });
  const cancel = useAction(async (id: string) => {
    await call({ method: "DELETE", path: `${path}/${id}`, workspace });
    say("The execution is being cancelled.");
    await queries.invalidateQueries({ queryKey: key });
  });
  const failure = error ?? start.error ?? cancel.error;
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
        <Button kind="main" busy={start.busy} onClick={() => void start.run(null)}>
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
            { title: "Execution", look: "name", cell: ({ metadata }) => <code>{metadata.id}</code> },
            { title: "Status", cell: ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge> },
            { title: "Tasks", look: "wide", cell: statsOf },
            { title: "Age", look: "age", cell: ({ metadata }) => ageOf(metadata.createdAt) },
            {
              title: "Actions",
              cell: ({ metadata: { id, completedAt } }) => (
                <span class="row">
                  <Button kind="bare" onClick={() => setShown(id)}>
                    Tasks
                  </Button>
                  {completedAt === undefined ? (
                    <Button kind="bare" onClick={() => void cancel.run(id)}>
                      Cancel
                    </Button>
                  ) : null}
                </span>
              ),
            },
          ]}
        />
      ) : null}
      {shown === null ? null : <Tasks key={shown} path={`${path}/${shown}/tasks`} workspace={workspace} />}
    </div>
  );
}

const statsOf = ({ stats: { total, success, failure, running } }: Execution): string =>
  [
    `${success} of ${total} done`,
    ...(running > 0 ? [`${running} running`] : []),
    ...(failure > 0 ? [`${failure} failed`] : []),
  ].join(", ");
