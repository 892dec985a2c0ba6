import { type Named, useReferences } from "../../api/references.ts";
import { titleOf } from "../../lib/titles.ts";
import { Card } from "../../ui/facts.tsx";
import { places, top } from "../../views/places.ts";
import "./item.css";

/** What a resource uses and what uses it, as links; nothing when it stands alone. */
export function ReferencesCard({ workspace, kind, name }: { workspace: string; kind: string; name: string }) {
  const { data } = useReferences(workspace, kind, name);
  const sides = [
    { title: "Uses", found: data?.uses ?? [] },
    { title: "Used by", found: data?.usedBy ?? [] },
  ].filter(({ found }) => found.length > 0);
  return (
    <>
      {sides.map(({ title, found }) => (
        <Card key={title} title={title}>
          <ul class="references">
            {found.map((one) => (
              <Reference key={`${one.kind} ${one.name}`} workspace={workspace} named={one} />
            ))}
          </ul>
        </Card>
      ))}
    </>
  );
}

const Reference = ({ workspace, named: { kind, name } }: { workspace: string; named: Named }) => (
  <li>
    <a href={places.item(workspace, top(kind), name)}>{name}</a>
    <span class="quiet">{titleOf(kind)}</span>
  </li>
);
