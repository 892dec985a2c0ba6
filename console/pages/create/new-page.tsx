/** A new resource of any kind, as a form or as text. Both change the same value. */
import "./new-page.css";
import { useMemo, useState } from "preact/hooks";
import { useAction, useAnswer } from "../../api/query.ts";
import { createResource } from "../../api/resources.ts";
import { useSchema } from "../../api/schema.ts";
import { FormInput } from "../../form/form-field.tsx";
import { type FormField, fieldsOf, withMember } from "../../form/schema.ts";
import { go, queryOf } from "../../lib/location.ts";
import { type Json, memberAt, nameOf } from "../../lib/members.ts";
import { type Collection, collectionPath } from "../../lib/places.ts";
import { titleOf, withinSentence } from "../../lib/titles.ts";
import { fromYaml, toYaml } from "../../lib/yaml.ts";
import { Button, LinkButton } from "../../ui/button.tsx";
import { Editor } from "../../ui/editor.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { say } from "../../ui/toast.tsx";
import { beginning, isFirst } from "../../views/forms.ts";
import { createCommand } from "../../views/lines.ts";
import { places } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";

export function NewPage({ workspace, kind, parents }: { workspace: string } & Collection) {
  const collection = { kind, parents };
  const [body, setBody] = useState<Json>(beginning(kind.name) as Json);
  const [text, setText] = useState<string | null>(null);
  const isText = queryOf("as") === "text";
  const { data: schema } = useSchema(kind.name);
  const fields = useMemo(() => schema && fieldsOf(schema.value), [schema]);
  const { run, busy, error } = useAction(async () => {
    const sent = isText && text !== null ? ((await fromYaml(text)) as Json) : body;
    const made = await createResource(workspace, collection, sent);
    say(`${nameOf(made)} is created.`);
    go(
      kind.verbs.includes("get")
        ? places.item(workspace, collection, nameOf(made))
        : places.list(workspace, collection),
    );
  });
  const own = places.create(workspace, collection);
  return (
    <>
      <div class="page-head">
        <h1 class="grow">New {withinSentence(titleOf(kind.name))}</h1>
        <CopyAs
          asked={{
            ...{ method: "POST", path: collectionPath(collection), workspace, body, operation: `${kind.name}Create` },
            ...{ params: places.params(collection), command: createCommand(kind, parents, body, workspace) },
          }}
        />
      </div>
      <Tabs
        label="How to write it"
        tabs={[
          { title: "Form", href: own, isHere: !isText },
          { title: "YAML", href: `${own}?as=text`, isHere: isText },
        ]}
      />
      {fields === undefined ? (
        <Loading />
      ) : (
        <form
          class="new-form"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (!busy) void run(null);
          }}
        >
          {isText ? (
            <YamlBody body={body} schema={schema?.value} text={text} onInput={setText} />
          ) : (
            <Fields kind={kind.name} fields={fields} body={body} onInput={setBody} message={error?.message ?? ""} />
          )}
          {error ? <Failure error={error} /> : null}
          <div class="row">
            <Button kind="main" type="submit" busy={busy}>
              Create
            </Button>
            <LinkButton href={places.list(workspace, collection)}>Cancel</LinkButton>
          </div>
        </form>
      )}
    </>
  );
}

interface FieldsProps {
  kind: string;
  fields: readonly FormField[];
  body: Json;
  onInput(body: Json): void;
  /** The server's refusal, which names the member that it is about. */
  message: string;
}

function Fields({ kind, fields, body, onInput, message }: FieldsProps) {
  const input = (field: FormField) => (
    <FormInput
      key={field.path}
      field={field}
      value={memberAt(body, field.path)}
      wrong={message.includes(field.path) ? message : null}
      onInput={(value) => onInput(withMember(body, field.path, value))}
    />
  );
  const isShown = (field: FormField): boolean => field.isRequired || isFirst(kind, field.path);
  const more = fields.filter((field) => !isShown(field));
  return (
    <>
      {fields.filter(isShown).map(input)}
      {more.length === 0 ? null : (
        <details>
          <summary>More, {more.length} members</summary>
          <div class="more-fields">{more.map(input)}</div>
        </details>
      )}
    </>
  );
}

interface YamlBodyProps {
  body: Json;
  schema: unknown;
  text: string | null;
  onInput(text: string): void;
}

function YamlBody({ body, schema, text, onInput }: YamlBodyProps) {
  const { data } = useAnswer({ key: ["yaml", body], ask: () => toYaml(Object.keys(body).length === 0 ? EMPTY : body) });
  if (data === undefined) return <Loading />;
  return (
    <Editor
      {...{ label: "The resource as YAML", language: "yaml", text: data, schema }}
      isChanged={text !== null}
      onInput={onInput}
    />
  );
}

const EMPTY = { metadata: { name: "" }, spec: {} };
