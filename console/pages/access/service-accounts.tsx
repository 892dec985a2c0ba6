import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { ageOf } from "../../lib/format.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { KeyForm, type NewKey } from "./key-form.tsx";
import { otherRole, useRoleChange } from "./role.ts";
import { RoleForm } from "./role-form.tsx";

interface ServiceAccount {
  client_id: string;
  client_secret?: string;
  name: string;
  role: string;
  created_at: string;
}

const PATH = "/service_accounts";

/** Identities for machines. A client secret and a key are shown once. */
export function ServiceAccounts({ workspace }: { workspace: string }) {
  const { data, error } = useList<ServiceAccount>(workspace, PATH);
  const noChange = useRefusal(workspace, "serviceAccountUpdate");
  const noKey = useRefusal(workspace, "serviceAccountKeyCreate");
  const [shown, setShown] = useState<{ title: string; secret: string } | null>(null);
  const [keyed, setKeyed] = useState<ServiceAccount | null>(null);
  const makeKey = async ({ client_id }: ServiceAccount, key: NewKey): Promise<string> => {
    const path = `${PATH}/${encodeURIComponent(client_id)}/api_keys`;
    return (await call<{ apiKey: string }>({ method: "POST", path, body: key, workspace })).apiKey;
  };
  const change = useRoleChange(workspace, PATH, (name) => `${name} is deleted, and its keys with it.`);
  const changeTo = ({ client_id, name }: ServiceAccount, role: string | null): void =>
    void change.run({ id: client_id, name, role });
  const create = async (name: string, role: string): Promise<void> => {
    const made = await call<ServiceAccount>({ method: "POST", path: PATH, body: { name, role }, workspace });
    setShown({ title: "The client secret", secret: made.client_secret ?? "" });
    await listChanged(workspace, PATH);
  };
  const failure = error ?? change.error;
  return (
    <div class="stack">
      <RoleForm
        workspace={workspace}
        operation="serviceAccountCreate"
        label="Name of a new service account"
        verb="Create"
        onSend={create}
      />
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
                  <Button kind="bare" unable={noKey} onClick={() => setKeyed(account)}>
                    New key
                  </Button>
                  <Button kind="bare" unable={noChange} onClick={() => changeTo(account, otherRole(account.role))}>
                    Make {otherRole(account.role)}
                  </Button>
                  <Button kind="bare" unable={noChange} onClick={() => changeTo(account, null)}>
                    Delete
                  </Button>
                </span>
              ),
            },
          ]}
        />
      ) : null}
      {keyed === null ? null : (
        <Dialog title={`A key of ${keyed.name}`} onClose={() => setKeyed(null)}>
          <KeyForm
            label="Name of the key"
            everything="all that the service account may do"
            onMake={(key) => makeKey(keyed, key)}
          />
        </Dialog>
      )}
    </div>
  );
}
