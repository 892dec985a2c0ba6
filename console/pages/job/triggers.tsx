/** The cron triggers of a job: when each fires, which slots started an execution, and which were skipped and why. */
import { useExecutions } from "../../api/executions.ts";
import type { Workload } from "../../api/workload.ts";
import { type CronSlot, cronSlots, cronTriggersOf } from "../../lib/cron-slots.ts";
import { ageOf, timeOf } from "../../lib/format.ts";
import { here } from "../../lib/location.ts";
import { memberAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Card, Facts } from "../../ui/facts.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";

export function TriggersTab({ workload, resource }: { workload: Workload; resource: unknown }) {
  const { data, error } = useExecutions(workload);
  const triggers = cronTriggersOf(memberAt(resource, "spec.triggers"));
  const slots = cronSlots(data ?? [], memberAt(resource, "events"));
  if (triggers.length === 0 && slots.length === 0)
    return (
      <Blank
        title="No schedule yet"
        text="A cron trigger runs the job at times of its own. Triggers are members of the job's text."
      />
    );
  return (
    <div class="stack">
      {triggers.length === 0 ? null : (
        <Card title="Schedules">
          <Facts
            facts={triggers.map(({ id, schedule, timezone, isOn }) => [
              id,
              <>
                <code>{schedule}</code> <span class="quiet">{isOn ? timezone : `${timezone}, turned off`}</span>
              </>,
            ])}
          />
        </Card>
      )}
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {slots.length > 0 ? (
        <Table label="Slots" rows={slots} keyOf={keyOf} columns={COLUMNS} />
      ) : data === undefined ? null : (
        <p class="quiet">No slot has come yet.</p>
      )}
    </div>
  );
}

const keyOf = ({ trigger, time, execution }: CronSlot): string => `${trigger} ${time} ${execution?.id ?? ""}`;

const linkOf = (id: string): string => `${here.value.pathname}?tab=executions&execution=${encodeURIComponent(id)}`;

const COLUMNS = [
  { title: "Trigger", look: "name", cell: ({ trigger }: CronSlot) => trigger },
  {
    title: "Slot",
    cell: ({ execution }: CronSlot) => (
      <Badge tone={execution ? "good" : "busy"}>{execution ? "fired" : "skipped"}</Badge>
    ),
  },
  {
    title: "What came of it",
    look: "wide",
    cell: ({ execution, reason }: CronSlot) =>
      execution ? (
        <span class="row">
          <Badge tone={toneOf(execution.status)}>{execution.status}</Badge>
          <a class="mono" href={linkOf(execution.id)}>
            {execution.id}
          </a>
        </span>
      ) : (
        <span title={reason}>{reason}</span>
      ),
  },
  {
    title: "Age",
    look: "age",
    cell: ({ time }: CronSlot) => <span title={timeOf(time)}>{ageOf(time)}</span>,
  },
];
