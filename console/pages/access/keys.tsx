import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useAction } from "../../api/query.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { ageOf } from "../../lib/format.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { ScopePicker } from "./scope-picker.tsx";
import "./access.css";

interface Key {
  id: string;
  name: string;
  prefix?: string;
  scopes?: readonly string[];
  lastUsedAt?: string;
  createdAt: string;
}

const PATH = "/api_keys";
const LIVES = ["1d", "30d", "90d", "365d"];

/** The person's own keys. The secret of a key is shown once, when it is made. */
export function Keys({ workspace }: { workspace: string }) {
  const { data, error } = useList<Key>(workspace, PATH);
  const [name, setName] = useState("");
  const [life, setLife] = useState("90d");
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set());
  const [secret, setSecret] = useState("");
  const make = useAction(async () => {
    const body = {
      ...(name === "" ? {} : { name }),
      ...(life === "" ? {} : { expires_in: life }),
      ...(scopes.size === 0 ? {} : { scopes: [...scopes] }),
      workspace,
    };
    const made = await call<{ apiKey: string }>({ method: "POST", path: PATH, body, workspace });
    setSecret(made.apiKey);
    setName("");
    await listChanged(workspace, PATH);
  });
  const remove = useAction(async (key: Key) => {
    await call({ method: "DELETE", path: `${PATH}/${key.id}`, workspace });
    say(`The key ${key.name} is deleted.`);
    await listChanged(workspace, PATH);
  });
  const failure = error ?? make.error ?? remove.error;
  return (
    <div class="stack">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void make.run(null);
        }}
      >
        <div class="line-form">
          <Field label="Name of a new key" value={name} onInput={setName} />
          <Choice label="Works for" value={life} choices={LIVES} none="Ever" onInput={setLife} />
          <Button kind="main" type="submit" busy={make.busy}>
            Make a key
          </Button>
        </div>
        <ScopePicker picked={scopes} onInput={setScopes} />
        {secret === "" ? null : (
          <>
            <p>This is the key. It is shown once.</p>
            <Code text={secret} noun="The key" />
          </>
        )}
      </form>
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
