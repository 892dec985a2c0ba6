/** A new key: its name, its life and its scopes. The secret of a key is shown once, when it is made. */
import "./access.css";
import { useState } from "preact/hooks";
import { useAction } from "../../api/query.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";
import { ScopePicker } from "./scope-picker.tsx";

const LIVES = ["1d", "30d", "90d", "365d"];

export interface NewKey {
  name?: string;
  expires_in?: string;
  scopes?: readonly string[];
}

export interface KeyFormProps {
  label: string;
  /** What a key without scopes may do. */
  everything: string;
  /** Makes the key and answers with its secret. */
  onMake(key: NewKey): Promise<string>;
}

export function KeyForm({ label, everything, onMake }: KeyFormProps) {
  const [name, setName] = useState("");
  const [life, setLife] = useState("90d");
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set());
  const [secret, setSecret] = useState("");
  const make = useAction(async () => {
    setSecret(
      await onMake({
        ...(name === "" ? {} : { name }),
        ...(life === "" ? {} : { expires_in: life }),
        ...(scopes.size === 0 ? {} : { scopes: [...scopes] }),
      }),
    );
    setName("");
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void make.run(null);
      }}
    >
      <div class="line-form">
        <Field label={label} value={name} onInput={setName} />
        <Choice label="Works for" value={life} choices={LIVES} none="Ever" onInput={setLife} />
        <Button kind="main" type="submit" busy={make.busy}>
          Make a key
        </Button>
      </div>
      <ScopePicker everything={everything} picked={scopes} onInput={setScopes} />
      {make.error ? <Failure error={make.error} /> : null}
      {secret === "" ? null : (
        <>
          <p>This is the key. It is shown once.</p>
          <Code text={secret} noun="The key" />
        </>
      )}
    </form>
  );
}
