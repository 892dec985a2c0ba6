import { ageOf, shortDigests, timeOf } from "../../lib/format.ts";
import { textAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/facts.tsx";
import "./item.css";

/** What happened to a resource, newest first. */
export function Events({ events }: { events: readonly unknown[] }) {
  return (
    <Card title="Events">
      <ul class="events">
        {[...events].reverse().map((event, at) => {
          const [status, time] = [textAt(event, "status") || textAt(event, "type"), textAt(event, "time")];
          return (
            <li key={`${time} ${status} ${at}`}>
              {status === "" ? null : <Badge tone={toneOf(status)}>{status}</Badge>}
              <span class="grow" title={textAt(event, "message")}>
                {shortDigests(textAt(event, "message"))}
              </span>
              <span class="quiet" title={timeOf(time)}>
                {ageOf(time)}
              </span>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}
