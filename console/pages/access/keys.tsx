import { call } from "../../api/call.ts";
import { useAction } from "../../api/query.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { ageOf } from "../../lib/format.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { KeyForm, type NewKey } from "./key-form.tsx";

interface Key {
  id: string;
  name: string;
  prefix?: string;
  scopes?: readonly string[];
  lastUsedAt?: string;
  createdAt: string;
}

const PATH = "/api_keys";

/** The person's own keys. The secret of a key is shown once, when it is made. */
export function Keys({ workspace }: { workspace: string }) {
  const { data, error } = useList<Key>(workspace, PATH);
  const make = async (key: NewKey): Promise<string> => {
    const made = await call<{ apiKey: string }>({
      ...{ method: "POST", path: PATH, body: { ...key, workspace }, workspace },
    });
    await listChanged(workspace, PATH);
    return made.apiKey;
  };
  const remove = useAction(async (key: Key) => {
    await call({ method: "DELETE", path: `${PATH}/${key.id}`, workspace });
    say(`The key ${key.name} is deleted.`);
    await listChanged(workspace, PATH);
  });
  const failure = error ?? remove.error;
  return (
    <div class="stack">
      <KeyForm label="Name of a new key" everything="all that you may do" onMake={make} />
      {failure ? <Failure error={failure} /> : null}
      <Table
        label="API keys"
        rows={data ?? []}
        keyOf={({ id }) => id}
        columns={[
          { title: "Name", look: "name", cell: (key) => key.name },
          { title: "Begins with", look: "wide", cell: (key) => <code>{key.prefix ?? ""}</code> },
          { title: "Scopes", look: "wide", cell: (key) => key.scopes?.join(", ") ?? "all" },
          {
            title: "Last used",
            look: "age",
            cell: (key) => (key.lastUsedAt ? `${ageOf(key.lastUsedAt)} ago` : "never"),
          },
          {
            title: "Actions",
            cell: (key) => (
              <Button kind="bare" onClick={() => void remove.run(key)}>
                Delete
              </Button>
            ),
          },
        ]}
      />
    </div>
  );
}
