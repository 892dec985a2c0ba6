import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { otherRole, useRoleChange } from "./role.ts";
import { RoleForm } from "./role-form.tsx";

interface Person {
  sub: string;
  email: string;
  role: string;
  accepted: boolean;
}

const PATH = "/users";

/** People of the workspace. An invitation is a link that whoever invites hands on. */
export function People({ workspace }: { workspace: string }) {
  const { data, error } = useList<Person>(workspace, PATH);
  const noUpdate = useRefusal(workspace, "userUpdate");
  const noRemove = useRefusal(workspace, "userRemove");
  const change = useRoleChange(workspace, PATH, (name) => `${name} is removed.`);
  const changeTo = ({ sub, email }: Person, role: string | null): void =>
    void change.run({ id: sub || email, name: email, role });
  const failure = error ?? change.error;
  return (
    <div class="stack">
      <Invite workspace={workspace} />
      {failure ? <Failure error={failure} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      <Table
        label="People"
        rows={data ?? []}
        keyOf={({ email }) => email}
        columns={[
          { title: "Email", look: "name", cell: ({ email }) => email },
          {
            title: "State",
            look: "wide",
            cell: ({ accepted }) => <Badge tone={accepted ? "good" : "busy"}>{accepted ? "member" : "invited"}</Badge>,
          },
          { title: "Role", cell: ({ role }) => role },
          {
            title: "Actions",
            cell: (person) => (
              <span class="row">
                <Button kind="bare" unable={noUpdate} onClick={() => changeTo(person, otherRole(person.role))}>
                  Make {otherRole(person.role)}
                </Button>
                <Button kind="bare" unable={noRemove} onClick={() => changeTo(person, null)}>
                  Remove
                </Button>
              </span>
            ),
          },
        ]}
      />
    </div>
  );
}

function Invite({ workspace }: { workspace: string }) {
  const [link, setLink] = useState("");
  const invite = async (email: string, role: string): Promise<void> => {
    const made = await call<{ url?: string }>({ method: "POST", path: PATH, body: { email, role }, workspace });
    setLink(made.url ?? "");
    await listChanged(workspace, PATH);
  };
  return (
    <div class="stack">
      <RoleForm
        workspace={workspace}
        operation="userInvite"
        label="Invite somebody by email"
        verb="Invite"
        onSend={invite}
      />
      {link === "" ? null : (
        <>
          <p>Hand this link on; it is shown once.</p>
          <Code text={link} noun="The link" />
        </>
      )}
    </div>
  );
}
