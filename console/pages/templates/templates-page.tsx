/** Projects to begin with, deployed with one click, and the deployment of a folder of one's own. */
import "./templates.css";
import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { deployCode, type Template, templateFiles, useTemplates } from "../../api/templates.ts";
import { go } from "../../lib/location.ts";
import { titleOf } from "../../lib/titles.ts";
import { randomName } from "../../lib/words.ts";
import { zipOf } from "../../lib/zip.ts";
import { Button } from "../../ui/button.tsx";
import { Code } from "../../ui/code.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { kindNamed, places, top } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { OwnCode } from "./own-code.tsx";

export function TemplatesPage({ workspace }: { workspace: string }) {
  const { data, error } = useTemplates(workspace);
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Templates</h1>
        <CopyAs
          asked={{
            ...{ method: "GET", path: "/templates", workspace, operation: "templateList", params: {} },
            command: "berth template list",
          }}
        />
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      <div class="gallery">
        {data?.map((template) => (
          <TemplateCard key={template.name} template={template} workspace={workspace} />
        ))}
      </div>
      <OwnCode workspace={workspace} />
    </>
  );
}

function TemplateCard({ template, workspace }: { template: Template; workspace: string }) {
  const { name, description, type, language, variables } = template;
  const [isOpen, setOpen] = useState(false);
  const refusal = useRefusal(workspace, `${type}Create`);
  const deploy = useAction(async (given: Given) => {
    const spec = given.envs.length === 0 ? {} : { runtime: { envs: given.envs } };
    const archive = zipOf(await templateFiles(workspace, name));
    await deployCode(workspace, top(type), { metadata: { name: given.name }, spec }, archive);
    go(`${places.item(workspace, top(type), given.name)}?tab=logs`);
  });
  // A sandbox's template is a script for one's own machine.
  const canDeploy = kindNamed(type).revisions;
  return (
    <article class="card template">
      <div class="row">
        <h2 class="grow">{name}</h2>
        <span class="quiet">
          {titleOf(type)}, {language}
        </span>
      </div>
      <p class="grow">{description}</p>
      {canDeploy ? (
        <div class="row">
          <Button
            kind="main"
            busy={deploy.busy}
            unable={refusal}
            onClick={() =>
              variables.length > 0 ? setOpen(true) : void deploy.run({ name: randomName(name), envs: [] })
            }
          >
            Deploy
          </Button>
          <span class="quiet">{variables.length > 0 ? "asks for its variables" : ""}</span>
        </div>
      ) : (
        <Code text={`berth new ${name}`} noun="The command" />
      )}
      {deploy.error ? <Failure error={deploy.error} /> : null}
      {isOpen ? (
        <Variables
          template={template}
          busy={deploy.busy}
          error={deploy.error}
          onClose={() => setOpen(false)}
          onDeploy={(given) => void deploy.run(given)}
        />
      ) : null}
    </article>
  );
}

interface Given {
  name: string;
  envs: readonly { name: string; value: string; secret: boolean }[];
}

interface VariablesProps {
  template: Template;
  busy: boolean;
  error: Error | null;
  onClose(): void;
  onDeploy(given: Given): void;
}

function Variables({ template, busy, error, onClose, onDeploy }: VariablesProps) {
  const [name, setName] = useState(() => randomName(template.name));
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const envs = template.variables.flatMap(({ name: word, secret }) => {
    const value = values[word] ?? "";
    return value === "" ? [] : [{ name: word, value, secret }];
  });
  return (
    <Dialog
      title={`Deploy ${template.name}`}
      onClose={onClose}
      foot={
        <Button
          kind="main"
          busy={busy}
          unable={name === "" ? "A name is missing" : null}
          onClick={() => onDeploy({ name, envs })}
        >
          Deploy
        </Button>
      }
    >
      <div class="stack">
        <Field label="Name" value={name} onInput={setName} />
        {template.variables.map(({ name: word, description, secret }) => (
          <Field
            key={word}
            label={word}
            hint={secret ? `${description} Kept as a secret.` : description}
            value={values[word] ?? ""}
            onInput={(value) => setValues({ ...values, [word]: value })}
          />
        ))}
        {error ? <Failure error={error} /> : null}
      </div>
    </Dialog>
  );
}
