/** The first tasks of an execution, with what went wrong. */
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import { ageOf } from "../../lib/format.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";

interface Task {
  metadata: { name: string; startedAt?: string; completedAt?: string };
  status: string;
  conditions: readonly { message: string }[];
}

const EVERY_MS = 2000;

export function Tasks({ path, workspace }: { path: string; workspace: string }) {
  const { data, error } = useAnswer({
    key: ["tasks", workspace, path],
    everyMs: EVERY_MS,
    ask: async (signal) => {
      const answer = await call<Task[] | { data: Task[] }>({ path, workspace, signal });
      return Array.isArray(answer) ? answer : answer.data;
    },
  });
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  return (
    <Table
      label="Tasks"
      rows={data}
      keyOf={({ metadata }) => metadata.name}
      columns={[
        { title: "Task", look: "name", cell: ({ metadata }) => metadata.name },
        { title: "Status", cell: ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge> },
        { title: "What was said", look: "wide", cell: ({ conditions }) => conditions.at(-1)?.message ?? "" },
        {
          title: "Started",
          look: "age",
          cell: ({ metadata }) => (metadata.startedAt ? ageOf(metadata.startedAt) : ""),
        },
      ]}
    />
  );
}
