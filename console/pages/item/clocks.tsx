import { ageOf, spanText } from "../../lib/format.ts";
import { createdAt, memberAt, textAt } from "../../lib/members.ts";
import "./item.css";

/** The three clocks of a sandbox: how old it is, since when nobody used it, and when it ends. */
export function Clocks({ resource }: { resource: unknown }) {
  const used = textAt(resource, "lastUsedAt");
  const left = memberAt(resource, "expiresIn");
  const clocks = [
    { title: "Age", value: ageOf(createdAt(resource)) },
    { title: "Idle for", value: used === "" ? "never used" : ageOf(used) },
    { title: "Ends in", value: typeof left === "number" ? spanText(left * 1000) : "never" },
  ];
  return (
    <dl class="clocks">
      {clocks.map(({ title, value }) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
