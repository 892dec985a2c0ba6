import { differencesOf } from "../../lib/differences.ts";
import { memberAt, textAt } from "../../lib/members.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/facts.tsx";
import "./item.css";

export interface RevisionDifferenceProps {
  active: unknown;
  other: unknown;
  onClose(): void;
}

/** In which members of its configuration a revision differs from the one that answers. */
export function RevisionDifference({ active, other, onClose }: RevisionDifferenceProps) {
  const found = differencesOf(memberAt(active, "spec"), memberAt(other, "spec"));
  const value = (text: string | null, look: string) =>
    text === null ? <span class="quiet">absent</span> : <span class={look}>{text}</span>;
  return (
    <Card title={`${textAt(other, "id")} beside ${textAt(active, "id")}, which answers`}>
      <div class="stack">
        {found.length === 0 ? (
          <p class="quiet">Both have the same configuration; they differ in their code or their secrets, if at all.</p>
        ) : (
          <Table
            label="Differences"
            rows={found}
            keyOf={({ path }) => path}
            columns={[
              { title: "Member", look: "mono", cell: ({ path }) => path },
              { title: "Answers now", look: "mono", cell: ({ before }) => value(before, "was") },
              { title: "This revision", look: "mono", cell: ({ after }) => value(after, "becomes") },
            ]}
          />
        )}
        <div class="row">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Card>
  );
}
