import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { ageOf } from "../../lib/format.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import "./access.css";

interface ServiceAccount {
  client_id: string;
  client_secret?: string;
  name: string;
  role: string;
  created_at: string;
}

const PATH = "/service_accounts";
const ROLES = ["member", "admin"];

/** Identities for machines. A client secret and a key are shown once. */
export function ServiceAccounts({ workspace }: { workspace: string }) {
  const { data, error } = useList<ServiceAccount>(workspace, PATH);
  const noChange = useRefusal(workspace, "serviceAccountUpdate");
  const noKey = useRefusal(workspace, "serviceAccountKeyCreate");
  const [shown, setShown] = useState<{ title: string; secret: string } | null>(null);
  const key = useAction(async ({ client_id, name }: ServiceAccount) => {
    const path = `${PATH}/${encodeURIComponent(client_id)}/api_keys`;
    const made = await call<{ apiKey: string }>({ method: "POST", path, body: { name: "console" }, workspace });
    setShown({ title: `The key of ${name}`, secret: made.apiKey });
  });
  const change = useAction(async ({ account, role }: { account: ServiceAccount; role: string | null }) => {
    const path = `${PATH}/${encodeURIComponent(account.client_id)}`;
    if (role === null) await call({ method: "DELETE", path, workspace });
    else await call({ method: "PUT", path, body: { role }, workspace });
    say(role === null ? `${account.name} is deleted, and its keys with it.` : `${account.name} is ${role} now.`);
    await listChanged(workspace, PATH);
  });
  const failure = error ?? change.error ?? key.error;
  return (
    <div class="stack">
      <NewAccount workspace={workspace} onMade={(secret) => setShown({ title: "The client secret", secret })} />
      {shown === null ? null : (
        <>
          <p>{shown.title}. It is shown once.</p>
          <Code text={shown.secret} noun={shown.title} />
        </>
      )}
      {failure ? <Failure error={failure} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? (
        <Blank
          title="No service accounts yet"
          text="A service account is a machine's identity in this workspace, with a role and keys of its own."
        />
      ) : null}
      {data?.length ? (
        <Table
          label="Service accounts"
          rows={data}
          keyOf={({ client_id }) => client_id}
          columns={[
            { title: "Name", look: "name", cell: ({ name }) => name },
            { title: "Client id", look: "wide mono", cell: ({ client_id }) => client_id },
            { title: "Role", cell: ({ role }) => role },
            { title: "Age", look: "wide age", cell: ({ created_at }) => ageOf(created_at) },
            {
              title: "Actions",
              cell: (account) => (
                <span class="row">
                  <Button kind="bare" unable={noKey} onClick={() => void key.run(account)}>
                    New key
                  </Button>
                  <Button
                    kind="bare"
                    unable={noChange}
                    onClick={() => void change.run({ account, role: account.role === "admin" ? "member" : "admin" })}
                  >
                    {account.role === "admin" ? "Make member" : "Make admin"}
                  </Button>
                  <Button kind="bare" unable={noChange} onClick={() => void change.run({ account, role: null })}>
                    Delete
                  </Button>
                </span>
              ),
            },
          ]}
        />
      ) : null}
    </div>
  );
}

function NewAccount({ workspace, onMade }: { workspace: string; onMade(secret: string): void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  const refusal = useRefusal(workspace, "serviceAccountCreate");
  const { run, busy, error } = useAction(async () => {
    const made = await call<ServiceAccount>({ method: "POST", path: PATH, body: { name, role }, workspace });
    onMade(made.client_secret ?? "");
    setName("");
    await listChanged(workspace, PATH);
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (name !== "") void run(null);
      }}
    >
      <div class="line-form">
        <Field label="Name of a new service account" value={name} onInput={setName} />
        <Choice label="Role" value={role} choices={ROLES} onInput={setRole} />
        <Button kind="main" type="submit" busy={busy} unable={refusal}>
          Create
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
    </form>
  );
}
