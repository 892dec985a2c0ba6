/** The processes of a sandbox: start, look at their output, stop. */
import "./sandbox.css";
import { useState } from "preact/hooks";
import { queries, useAction, useAnswer } from "../../api/query.ts";
import { callWorkload, type Workload } from "../../api/workload.ts";
import { ageOf } from "../../lib/format.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Field } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure } from "../../ui/notice.tsx";

interface Process {
  pid: string;
  name: string;
  command: string;
  status: string;
  startedAt: string;
  exitCode?: number;
}

const EVERY_MS = 2000;

/** The pid is the sandbox's own word. */
const processAt = (pid: string): string => `/process/${encodeURIComponent(pid)}`;

export function ProcessesTab({ workload }: { workload: Workload }) {
  const key = ["processes", workload.workspace, workload.name];
  const { data = [], error } = useAnswer({
    key,
    everyMs: EVERY_MS,
    ask: (signal) => callWorkload<Process[]>(workload, { path: "/process", signal }),
  });
  const [command, setCommand] = useState("");
  const [shown, setShown] = useState<string | null>(null);
  const start = useAction(async (line: string) => {
    const made = await callWorkload<Process>(workload, { method: "POST", path: "/process", body: { command: line } });
    setCommand("");
    setShown(made.pid);
    await queries.invalidateQueries({ queryKey: key });
  });
  const stop = useAction(async (pid: string) => {
    await callWorkload(workload, { method: "DELETE", path: processAt(pid) });
    await queries.invalidateQueries({ queryKey: key });
  });
  const failure = error ?? start.error ?? stop.error;
  return (
    <div class="stack">
      <form
        class="command"
        onSubmit={(event) => {
          event.preventDefault();
          if (command.trim() !== "") void start.run(command);
        }}
      >
        <div class="grow">
          <Field label="Command" value={command} onInput={setCommand} placeholder="python -m http.server 8000" />
        </div>
        <Button kind="main" type="submit" busy={start.busy}>
          <Icon name="play" />
          Run
        </Button>
      </form>
      {failure ? <Failure error={failure} /> : null}
      {data.length === 0 ? (
        <Blank title="No processes yet" line={`berth sandbox exec ${workload.name} -- uname -a`} />
      ) : (
        <Table
          label="Processes"
          rows={data}
          keyOf={({ pid }) => pid}
          columns={[
            { title: "Command", look: "name", cell: (row) => <code title={row.command}>{row.command}</code> },
            { title: "Pid", look: "wide", cell: (row) => row.pid },
            { title: "Status", cell: (row) => <Badge tone={toneOf(row.status)}>{row.status}</Badge> },
            { title: "Exit", look: "wide", cell: (row) => row.exitCode ?? "" },
            { title: "Age", look: "age", cell: (row) => ageOf(row.startedAt) },
            {
              title: "Actions",
              cell: (row) => (
                <span class="row">
                  <Button kind="bare" onClick={() => setShown(row.pid)}>
                    Output
                  </Button>
                  {row.status === "running" ? (
                    <Button kind="bare" onClick={() => void stop.run(row.pid)}>
                      Stop
                    </Button>
                  ) : null}
                </span>
              ),
            },
          ]}
        />
      )}
      {shown === null ? null : <Output key={shown} workload={workload} pid={shown} />}
    </div>
  );
}

function Output({ workload, pid }: { workload: Workload; pid: string }) {
  const { data, error } = useAnswer({
    key: ["output", workload.workspace, workload.name, pid],
    everyMs: EVERY_MS,
    ask: (signal) => callWorkload<{ logs: string | null }>(workload, { path: `${processAt(pid)}/logs`, signal }),
  });
  if (error) return <Failure error={error} />;
  return <Code text={data?.logs || "Nothing was written yet."} noun="The output" />;
}
