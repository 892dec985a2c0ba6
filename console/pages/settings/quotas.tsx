/** What a workspace may have, and how much of it is in use. */
import "./settings.css";
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import { bytesOf } from "../../lib/format.ts";
import { titleOf } from "../../lib/titles.ts";
import { Card } from "../../ui/facts.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { Progress } from "../../ui/progress.tsx";

interface Quota {
  resource: string;
  limit: number | null;
  used: number;
}

/** Quotas that count no resources of a kind. */
const OTHER: Readonly<Record<string, { title: string; text?(value: number): string }>> = {
  drive_mb: { title: "Stored in drives", text: (megabytes) => bytesOf(megabytes * 2 ** 20) },
  drive_objects: { title: "Objects in drives" },
};

interface QuotasProps {
  workspace: string;
  title: string;
  /** Only these; without, all that are limited or in use. */
  only?: readonly string[];
}

export function Quotas({ workspace, title, only }: QuotasProps) {
  const { data, error } = useAnswer({
    key: ["quotas", workspace],
    ask: (signal) => call<{ quotas: Quota[] }>({ path: "/quotas", workspace, signal }),
  });
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  const shown = data.quotas.filter(({ resource, limit, used }) =>
    only ? only.includes(resource) : limit !== null || used > 0,
  );
  if (shown.length === 0 && only) return null;
  return (
    <Card title={title}>
      {shown.length === 0 ? <p class="quiet">Nothing is limited, and nothing is used.</p> : null}
      <ul class="quotas">
        {shown.map((quota) => (
          <Line key={quota.resource} quota={quota} />
        ))}
      </ul>
    </Card>
  );
}

function Line({ quota: { resource, limit, used } }: { quota: Quota }) {
  const { title = titleOf(resource), text = (value: number) => value.toLocaleString("en") } = OTHER[resource] ?? {};
  return (
    <li>
      <span>{title}</span>
      <span class="quiet">
        {text(used)}
        {limit === null ? "" : ` of ${text(limit)}`}
      </span>
      {limit === null ? null : (
        <Progress label={`${title} in use`} part={used / Math.max(1, limit)} isBad={used >= limit} />
      )}
    </li>
  );
}
