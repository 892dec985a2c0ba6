import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import "./access.css";

interface Person {
  sub: string;
  email: string;
  role: string;
  accepted: boolean;
}

const ROLES = ["member", "admin"];
const PATH = "/users";

/** People of the workspace. An invitation is a link that whoever invites hands on. */
export function People({ workspace }: { workspace: string }) {
  const { data, error } = useList<Person>(workspace, PATH);
  const noUpdate = useRefusal(workspace, "userUpdate");
  const noRemove = useRefusal(workspace, "userRemove");
  const change = useAction(async ({ person, role }: { person: Person; role: string | null }) => {
    const path = `${PATH}/${encodeURIComponent(person.sub || person.email)}`;
    if (role === null) await call({ method: "DELETE", path, workspace });
    else await call({ method: "PUT", path, body: { role }, workspace });
    say(role === null ? `${person.email} is removed.` : `${person.email} is ${role} now.`);
    await listChanged(workspace, PATH);
  });
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
                <Button
                  kind="bare"
                  unable={noUpdate}
                  onClick={() => void change.run({ person, role: person.role === "admin" ? "member" : "admin" })}
                >
                  {person.role === "admin" ? "Make member" : "Make admin"}
                </Button>
                <Button kind="bare" unable={noRemove} onClick={() => void change.run({ person, role: null })}>
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
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  const [link, setLink] = useState("");
  const refusal = useRefusal(workspace, "userInvite");
  const { run, busy, error } = useAction(async () => {
    const made = await call<{ url?: string }>({ method: "POST", path: PATH, body: { email, role }, workspace });
    setLink(made.url ?? "");
    setEmail("");
    await listChanged(workspace, PATH);
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (email !== "") void run(null);
      }}
    >
      <div class="line-form">
        <Field label="Invite somebody by email" value={email} onInput={setEmail} />
        <Choice label="Role" value={role} choices={ROLES} onInput={setRole} />
        <Button kind="main" type="submit" busy={busy} unable={refusal}>
          Invite
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
      {link === "" ? null : (
        <>
          <p>Hand this link on; it is shown once.</p>
          <Code text={link} noun="The link" />
        </>
      )}
    </form>
  );
}
