import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { changeWorkspace, type GroupMapping, useWorkspace } from "../../api/workspaces.ts";
import { settings } from "../../lib/settings.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Card } from "../../ui/facts.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import "./access.css";

const ROLES = ["member", "admin"];

/** Which role the groups of another identity provider have here, and where that provider sends people back to. */
export function SingleSignOn({ workspace }: { workspace: string }) {
  const found = useWorkspace(workspace);
  const [group, setGroup] = useState("");
  const [role, setRole] = useState("member");
  const refusal = useRefusal(workspace, "workspaceUpdate");
  const { run, busy, error } = useAction(async (groupMappings: readonly GroupMapping[]) => {
    await changeWorkspace(workspace, { groupMappings });
    setGroup("");
    say("The groups are changed.");
  });
  const mappings = found?.groupMappings ?? [];
  const without = (name: string): GroupMapping[] => mappings.filter(({ groupName }) => groupName !== name);
  return (
    <div class="stack">
      <form
        class="line-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (group !== "") void run([...without(group), { groupName: group, role }]);
        }}
      >
        <Field label="Group of the identity provider" value={group} onInput={setGroup} />
        <Choice label="Role here" value={role} choices={ROLES} onInput={setRole} />
        <Button kind="main" type="submit" busy={busy} unable={refusal}>
          Let the group in
        </Button>
      </form>
      {error ? <Failure error={error} /> : null}
      {found === undefined ? <Loading /> : null}
      {mappings.length === 0 ? (
        <Blank title="No groups yet" text="People of a group get its role in this workspace when they sign in." />
      ) : (
        <Table
          label="Groups"
          rows={mappings}
          keyOf={({ groupName }) => groupName}
          columns={[
            { title: "Group", look: "name", cell: ({ groupName }) => groupName },
            { title: "Role", cell: (mapping) => mapping.role },
            {
              title: "Actions",
              cell: ({ groupName }) => (
                <Button kind="bare" unable={refusal} onClick={() => void run(without(groupName))}>
                  Remove
                </Button>
              ),
            },
          ]}
        />
      )}
      <Card title="Identity providers">
        <div class="stack">
          <p>
            The operator names providers with the setting <code>identity_providers</code>; they stand on the page for
            signing in. A provider is told this address to send people back to:
          </p>
          <Code text={`${settings.publicUrl}/oauth/external/ID`} noun="The address" />
        </div>
      </Card>
    </div>
  );
}
