/** The members of a resource in plain sight, and its events. */
import { ageOf, timeOf } from "../../lib/format.ts";
import { isObject, memberAt, textAt } from "../../lib/members.ts";
import { labelOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card, type Fact, Facts } from "../../ui/facts.tsx";
import "./item.css";

export function Overview({ resource }: { resource: unknown }) {
  const reason = textAt(resource, "statusReason");
  const events = memberAt(resource, "events");
  const rest = isObject(resource)
    ? Object.entries(resource).filter(
        ([key]) => !["metadata", "spec", "events", "status", "statusReason"].includes(key),
      )
    : [];
  return (
    <div class="item-grid">
      <div class="stack">
        {reason === "" ? null : (
          <Card title="Why">
            <p>{reason}</p>
          </Card>
        )}
        <Card title="Specification">
          <Facts facts={factsOf(memberAt(resource, "spec"))} />
        </Card>
        {Array.isArray(events) && events.length > 0 ? <Events events={events} /> : null}
      </div>
      <div class="stack">
        <Card title="About">
          <Facts facts={[...factsOf(Object.fromEntries(rest)), ...factsOf(memberAt(resource, "metadata"))]} />
        </Card>
      </div>
    </div>
  );
}

/** Nested members become one name with dots, as people write them on the command line. */
function factsOf(value: unknown, before = ""): Fact[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]): Fact[] => {
    const name = before === "" ? key : `${before}.${key}`;
    if (isObject(member)) return factsOf(member, name);
    return [
      [before === "" ? labelOf(key) : `${labelOf(before.split(".")[0] ?? "")} · ${labelOf(key)}`, shown(key, member)],
    ];
  });
}

function shown(key: string, value: unknown) {
  if (Array.isArray(value)) {
    if (value.length === 0) return "";
    const isPlain = value.every((one) => typeof one !== "object");
    return <code>{isPlain ? value.join(", ") : value.map((one) => JSON.stringify(one)).join("\n")}</code>;
  }
  const text = value === null || value === undefined ? "" : String(value);
  if (/(At|expires)$/.test(key) && !Number.isNaN(Date.parse(text))) return `${timeOf(text)} (${ageOf(text)} ago)`;
  if (/^https?:\/\//.test(text))
    return (
      <a href={text} target="_blank" rel="noreferrer">
        {text}
      </a>
    );
  return text;
}

function Events({ events }: { events: readonly unknown[] }) {
  return (
    <Card title="Events">
      <ul class="events">
        {[...events].reverse().map((event, at) => {
          const [status, time] = [textAt(event, "status") || textAt(event, "type"), textAt(event, "time")];
          return (
            <li key={`${time} ${status} ${at}`}>
              {status === "" ? null : <Badge tone={toneOf(status)}>{status}</Badge>}
              <span class="grow">{textAt(event, "message")}</span>
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
