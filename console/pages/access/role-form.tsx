import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { Button } from "../../ui/button.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";
import { ROLES } from "./role.ts";
import "./access.css";

export interface RoleFormProps {
  workspace: string;
  /** Id of the operation that `onSend` calls. */
  operation: string;
  label: string;
  verb: string;
  onSend(name: string, role: string): Promise<void>;
}

/** One line: who, in which role, and a button. */
export function RoleForm({ workspace, operation, label, verb, onSend }: RoleFormProps) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<string>(ROLES[0]);
  const refusal = useRefusal(workspace, operation);
  const { run, busy, error } = useAction(async () => {
    await onSend(name, role);
    setName("");
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
        <Field label={label} value={name} onInput={setName} />
        <Choice label="Role" value={role} choices={ROLES} onInput={setRole} />
        <Button kind="main" type="submit" busy={busy} unable={refusal}>
          {verb}
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
    </form>
  );
}
