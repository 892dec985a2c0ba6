/** The members of a resource in plain sight, and its events. */
import type { KindFacts } from "../../lib/facts.ts";
import { ageOf, bytesOf, shortDigests, spanText, timeOf } from "../../lib/format.ts";
import { isObject, memberAt, textAt } from "../../lib/members.ts";
import { labelsOf } from "../../lib/titles.ts";
import { Card, type Fact, Facts } from "../../ui/facts.tsx";
import { Quotas } from "../settings/quotas.tsx";
import { Clocks } from "./clocks.tsx";
import { Events } from "./events.tsx";
import "./item.css";
import { ReferencesCard } from "./references-card.tsx";

export interface OverviewProps {
  resource: unknown;
  workspace: string;
  kind: KindFacts;
  name: string;
}

export function Overview({ resource, workspace, kind, name }: OverviewProps) {
  const reason = textAt(resource, "statusReason");
  const events = memberAt(resource, "events");
  const spec = memberAt(resource, "spec");
  // Some kinds have their members at the top, without a specification of their own.
  const isFlat = memberAt(resource, "metadata") === undefined;
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
        {isFlat ? (
          <Card title="Specification">
            <Facts facts={factsOf(Object.fromEntries(rest))} />
          </Card>
        ) : (
          <Card title="Specification">
            {isObject(spec) && Object.keys(spec).length > 0 ? (
              <Facts facts={factsOf(spec)} />
            ) : (
              <p class="quiet">It has a name and nothing else to set.</p>
            )}
          </Card>
        )}
        {Array.isArray(events) && events.length > 0 ? <Events events={events} /> : null}
      </div>
      <div class="stack">
        {kind.name === "sandbox" ? <Clocks resource={resource} /> : null}
        {isFlat ? null : (
          <Card title="About">
            <Facts facts={[...factsOf(Object.fromEntries(rest)), ...factsOf(memberAt(resource, "metadata"))]} />
          </Card>
        )}
        {kind.name === "drive" ? (
          <Quotas workspace={workspace} title="All drives of the workspace" only={["drive_mb", "drive_objects"]} />
        ) : null}
        {kind.within === null ? <ReferencesCard workspace={workspace} kind={kind.name} name={name} /> : null}
      </div>
    </div>
  );
}

/** A nested member has the name of its outermost one before its own. */
function factsOf(value: unknown, before: readonly string[] = []): Fact[] {
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, member]): Fact[] => {
    const path = [...before, key];
    if (isObject(member)) return factsOf(member, path);
    const words = labelsOf(path);
    return [[[...words.slice(0, -1).slice(0, 1), ...words.slice(-1)].join(" · "), shown(key, member)]];
  });
}

function shown(key: string, value: unknown) {
  if (Array.isArray(value)) {
    if (value.length === 0) return "";
    return value.every((one) => !isObject(one)) ? <code>{value.join(", ")}</code> : <Items items={value} />;
  }
  const text = value === null || value === undefined ? "" : String(value);
  if (typeof value === "number") return numberText(key, value);
  if (/(At|expires)$/.test(key) && !Number.isNaN(Date.parse(text))) return `${timeOf(text)} (${ageOf(text)} ago)`;
  if (/^https?:\/\//.test(text))
    return (
      <a href={text} target="_blank" rel="noreferrer">
        {text}
      </a>
    );
  const short = shortDigests(text);
  return short === text ? text : <span title={text}>{short}</span>;
}

/** Members that count megabytes. */
const MEGABYTES = ["memory", "size", "defaultSize"];

function numberText(key: string, value: number): string {
  if (MEGABYTES.includes(key)) return bytesOf(value * 2 ** 20);
  if (/Bytes$/.test(key)) return bytesOf(value);
  return key === "expiresIn" ? spanText(value * 1000) : String(value);
}

/** A list of objects, each as its own short list of members. */
const Items = ({ items }: { items: readonly unknown[] }) => (
  <ul class="fact-items">
    {items.map((item, at) => (
      <li key={at}>
        {flat(item).map(([member, value]) => (
          <span key={member}>
            <span class="quiet">{member}</span> {value}
          </span>
        ))}
      </li>
    ))}
  </ul>
);

/** Members of members have the names of all members before them. */
function flat(value: unknown, path: readonly string[] = []): [name: string, text: string][] {
  if (isObject(value)) return Object.entries(value).flatMap(([key, member]) => flat(member, [...path, key]));
  const text = Array.isArray(value) ? value.map(plain).join(", ") : String(value ?? "");
  return [[labelsOf(path).join(" · "), text]];
}

const plain = (value: unknown): string => (isObject(value) ? JSON.stringify(value) : String(value));
