import "./facts.css";
import type { ComponentChildren } from "preact";

export type Fact = readonly [label: string, value: ComponentChildren];

/** Names and values, without those that are empty. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  const shown = facts.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return (
    <dl class="facts">
      {shown.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      <div class="card-body">{children}</div>
    </section>
  );
}
