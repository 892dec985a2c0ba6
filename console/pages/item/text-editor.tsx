/** The whole resource as text. A change that was made from an old text is refused and shown, not overwritten. */
import { useState } from "preact/hooks";
import { ApiFailure } from "../../api/failure.ts";
import { useAction, useAnswer } from "../../api/query.ts";
import { type Found, updateResource } from "../../api/resources.ts";
import { useSchema } from "../../api/schema.ts";
import { isObject } from "../../lib/members.ts";
import type { Collection } from "../../lib/places.ts";
import { linesOfDifference } from "../../lib/text-difference.ts";
import { fromYaml, toYaml } from "../../lib/yaml.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Editor } from "../../ui/editor.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import "./item.css";

export interface TextEditorProps {
  workspace: string;
  collection: Collection;
  name: string;
  found: Found;
}

interface Draft {
  text: string;
  etag: string | null;
}

export function TextEditor({ workspace, collection, name, found }: TextEditorProps) {
  const { data: text } = useAnswer({
    key: ["yaml", found.etag, found.resource],
    ask: () => toYaml(written(found.resource)),
  });
  const [draft, setDraft] = useState<Draft | null>(null);
  const { run, busy, error } = useAction(async (given: Draft) => {
    await updateResource(workspace, collection, name, await fromYaml(given.text), given.etag);
    setDraft(null);
    say(`${name} is changed.`);
  });
  const { data: schema } = useSchema(collection.kind.name);
  if (text === undefined || schema === undefined) return <Loading />;
  const isConflict = error instanceof ApiFailure && error.status === 412;
  const canEdit = collection.kind.verbs.includes("update");
  if (!canEdit) return <Code text={text} />;
  return (
    <div class="stack">
      <Editor
        label={`${name} as YAML`}
        language="yaml"
        text={text}
        schema={schema.value}
        isChanged={draft !== null}
        onInput={(next) => setDraft({ text: next, etag: draft?.etag ?? found.etag })}
      />
      {error ? (
        <Failure error={error}>
          {isConflict ? (
            <>
              <p>Somebody changed it since you began. Lines with − are there now, lines with + are yours:</p>
              <Conflict now={text} mine={draft?.text ?? text} />
              <Button onClick={() => setDraft((own) => own && { ...own, etag: found.etag })}>
                Save mine over it next time
              </Button>
            </>
          ) : null}
        </Failure>
      ) : null}
      <div class="row">
        <Button
          kind="main"
          busy={busy}
          unable={draft === null ? "Nothing has changed" : null}
          onClick={() => draft && void run(draft)}
        >
          Save
        </Button>
        <Button unable={draft === null ? "Nothing has changed" : null} onClick={() => setDraft(null)}>
          Discard
        </Button>
      </div>
    </div>
  );
}

const Conflict = ({ now, mine }: { now: string; mine: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
  <pre class="conflict" tabIndex={0}>
    {linesOfDifference(now, mine).map(({ sign, text }, at) => (
      <span key={at} class={LOOKS[sign]}>{`${sign === "-" ? "−" : sign} ${text}\n`}</span>
    ))}
  </pre>
);

const LOOKS = { " ": "quiet", "-": "was", "+": "becomes" } as const;

/** What a person may change: the platform's own members are left out. */
function written(resource: unknown): unknown {
  if (!isObject(resource)) return resource;
  const { metadata, spec, ...rest } = resource;
  if (!isObject(metadata)) return rest;
  const { name, displayName, labels, externalId } = metadata;
  return { metadata: { name, displayName, labels, externalId }, spec };
}
