/** Runs one operation of the API with values that are typed in, and shows the answer. */
import { useState } from "preact/hooks";
import { send } from "../../api/call.ts";
import { queries, useAction } from "../../api/query.ts";
import type { OperationFacts } from "../../lib/facts.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";

export interface OperationDialogProps {
  operation: OperationFacts;
  workspace: string;
  onClose(): void;
}

export function OperationDialog({ operation, workspace, onClose }: OperationDialogProps) {
  const { method, path, summary } = operation;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
  const [values, setValues] = useState<Readonly<Record<string, string>>>(
    names.includes("workspaceName") ? { workspaceName: workspace } : {},
  );
  const [answer, setAnswer] = useState<string | null>(null);
  const takesBody = method === "POST" || method === "PUT";
  const { run, busy, error } = useAction(async () => {
    const text = values.body?.trim() ?? "";
    const response = await send({
      method,
      path: path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? "")),
      query: Object.fromEntries(new URLSearchParams(values.query ?? "")),
      workspace,
      ...(takesBody && text !== "" ? { body: JSON.parse(text) as unknown } : {}),
    });
    const told = await response.text();
    setAnswer(told === "" ? `${response.status}` : pretty(told));
    if (method !== "GET") await queries.invalidateQueries();
  });
  const field = (name: string, label: string, lines = 1) => (
    <Field
      label={label}
      lines={lines}
      value={values[name] ?? ""}
      onInput={(value) => setValues({ ...values, [name]: value })}
    />
  );
  const missing = names.find((name) => (values[name] ?? "") === "");
  return (
    <Dialog
      title={summary}
      onClose={onClose}
      foot={
        <Button
          kind="main"
          busy={busy}
          unable={missing === undefined ? null : `${missing} is missing`}
          onClick={() => void run(null)}
        >
          Run
        </Button>
      }
    >
      <div class="stack">
        <p class="mono quiet">
          {method} /v0{path}
        </p>
        {names.map((name) => field(name, name))}
        {method === "GET" ? field("query", "Query, as a=b&c=d") : null}
        {takesBody ? field("body", "Body, as JSON", 8) : null}
        {error ? <Failure error={error} /> : null}
        {answer === null ? null : <Code text={answer} noun="The answer" />}
      </div>
    </Dialog>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // not every answer is JSON
  }
}
