/** What runs, what failed, what the servers lack, what today costs, and three ways to begin. */
import "./home.css";
import { type Overview, useOverview } from "../../api/overview.ts";
import { ageOf, moneyOf } from "../../lib/format.ts";
import { titleOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/facts.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { readRequest } from "../../views/lines.ts";
import { places, top } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { Findings } from "./findings.tsx";
import { Starts } from "./starts.tsx";

export function HomePage({ workspace }: { workspace: string }) {
  const { data, error } = useOverview(workspace);
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Home</h1>
        <CopyAs asked={readRequest(workspace, "overviewGet", "/overview", "overview get")} />
      </div>
      <Starts workspace={workspace} />
      <Findings workspace={workspace} />
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data === undefined ? null : <Glance overview={data} workspace={workspace} />}
    </>
  );
}

/** Kinds at the top of a workspace, in the order of the day. */
const SHOWN = ["sandbox", "agent", "function", "job", "application", "model", "volume", "drive"];

function Glance({ overview: { kinds, failures, cost }, workspace }: { overview: Overview; workspace: string }) {
  const shown = SHOWN.flatMap((name) => kinds.find(({ kind, total }) => kind === name && total > 0) ?? []);
  return (
    <div class="glance">
      <Card title="What there is">
        {shown.length === 0 ? <p class="quiet">Nothing yet. Begin with one of the three above.</p> : null}
        <ul class="kinds">
          {shown.map(({ kind, plural, total, statuses }) => (
            <li key={kind}>
              <a href={places.list(workspace, top(kind))}>{titleOf(plural)}</a>
              <span class="total">{total.toLocaleString("en")}</span>
              <span class="row">
                {Object.entries(statuses).map(([status, count]) => (
                  <Badge key={status} tone={toneOf(status)}>{`${count} ${status}`}</Badge>
                ))}
              </span>
            </li>
          ))}
        </ul>
      </Card>
      <div class="stack">
        {cost === undefined ? null : (
          <Card title="Cost today">
            <p class="cost">{moneyOf(cost.today)}</p>
            <p class="quiet">since midnight, UTC</p>
          </Card>
        )}
        <Card title="Failures">
          {failures.length === 0 ? <p class="quiet">Nothing has failed.</p> : null}
          <ul class="failures">
            {failures.map(({ kind, name, reason, time }) => (
              <li key={`${kind} ${name}`}>
                <a href={places.item(workspace, top(kind), name)}>{name}</a>
                <span class="quiet">
                  {titleOf(kind)}, {ageOf(time)} ago
                </span>
                <p>{reason ?? ""}</p>
              </li>
            ))}
          </ul>
        </Card>
      </div>
    </div>
  );
}
