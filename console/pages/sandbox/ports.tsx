/** The ports of a sandbox: what listens, previews that lead there, and a look at one of them. */
import "./sandbox.css";
import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import {
  addressFor,
  createPreview,
  deletePreview,
  type OpenPort,
  type Preview,
  usePorts,
  usePreviews,
} from "../../api/previews.ts";
import { useAction } from "../../api/query.ts";
import type { Workload } from "../../api/workload.ts";
import { settings } from "../../lib/settings.ts";
import { randomName } from "../../lib/words.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Frame } from "../../ui/frame.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { kindNamed, places } from "../../views/places.ts";

export function PortsTab({ workload }: { workload: Workload }) {
  const { workspace, name } = workload;
  const { data: ports = [], error: unknown } = usePorts(workload);
  const { previews, error } = usePreviews(workspace, name);
  const [shown, setShown] = useState<{ title: string; address: string } | null>(null);
  const noDelete = useRefusal(workspace, "previewDelete");
  const open = useAction(async (preview: Preview) =>
    setShown({ title: preview.name, address: await addressFor(workspace, name, preview) }),
  );
  const visit = useAction(async (preview: Preview) => {
    window.open(await addressFor(workspace, name, preview), "_blank", "noopener");
  });
  const remove = useAction(async (preview: Preview) => {
    await deletePreview(workspace, name, preview.name);
    setShown(null);
  });
  const failure = error ?? unknown ?? open.error ?? visit.error ?? remove.error;
  const tokensOf = (preview: string): string =>
    places.list(workspace, { kind: kindNamed("previewtoken"), parents: [name, preview] });
  return (
    <div class="stack">
      <Ports ports={ports} previews={previews ?? []} />
      <NewPreview workspace={workspace} sandbox={name} ports={ports} />
      {failure ? <Failure error={failure} /> : null}
      {previews === undefined && !error ? <Loading /> : null}
      {previews?.length === 0 ? (
        <Blank
          title="No previews yet"
          text="A preview gives a port of the sandbox an address of its own, for people with a token or for everybody."
        />
      ) : null}
      {previews?.length ? (
        <Table
          label="Previews"
          rows={previews}
          keyOf={(preview) => preview.name}
          columns={[
            { title: "Name", look: "name", cell: (preview) => preview.name },
            { title: "Port", cell: ({ port }) => port },
            { title: "Address", look: "wide mono", cell: ({ url }) => url },
            {
              title: "For",
              look: "wide",
              cell: ({ isPublic }) => (
                <Badge tone={isPublic ? "busy" : "calm"}>{isPublic ? "everybody" : "with a token"}</Badge>
              ),
            },
            {
              title: "Actions",
              cell: (preview) => (
                <span class="row">
                  <Button
                    kind="bare"
                    label={`Show ${preview.name}`}
                    unable={noFrame(preview)}
                    onClick={() => void open.run(preview)}
                  >
                    Show
                  </Button>
                  <Button kind="bare" label={`Open ${preview.name}`} onClick={() => void visit.run(preview)}>
                    Open
                  </Button>
                  <a class="button bare" href={tokensOf(preview.name)}>
                    Tokens
                  </a>
                  <Button
                    kind="bare"
                    unable={noDelete}
                    label={`Delete ${preview.name}`}
                    onClick={() => void remove.run(preview)}
                  >
                    Delete
                  </Button>
                </span>
              ),
            },
          ]}
        />
      ) : null}
      {shown === null ? null : (
        <Frame
          title={`Preview ${shown.title}`}
          address={shown.address}
          hasOwnOrigin={new URL(shown.address).origin !== new URL(settings.publicUrl).origin}
          onClose={() => setShown(null)}
        />
      )}
    </div>
  );
}

/** Why the page of a preview cannot be shown inside of this one; null when it can. */
function noFrame({ url, customDomain, isPublic }: Preview): string | null {
  const { origin, protocol } = new URL(url);
  if (origin === location.origin) return "It would share the console's origin. Open it instead.";
  if (customDomain !== "") return "A domain of its own is shown in a tab of its own. Open it instead.";
  return isPublic || protocol === "https:"
    ? null
    : "Without HTTPS browsers keep no cookie for a private page in a frame. Open it instead.";
}

function Ports({ ports, previews }: { ports: readonly OpenPort[]; previews: readonly Preview[] }) {
  if (ports.length === 0) return <p class="quiet">No process that was started here listens on a port.</p>;
  return (
    <ul class="ports" aria-label="Open ports">
      {ports.map(({ port, address, process }) => (
        <li key={port}>
          <strong>{port}</strong>
          <span class="quiet">
            {process} on {address}
          </span>
          {previews.some((one) => one.port === port) ? <Badge tone="good">has a preview</Badge> : null}
        </li>
      ))}
    </ul>
  );
}

interface NewPreviewProps {
  workspace: string;
  sandbox: string;
  ports: readonly OpenPort[];
}

const AUDIENCES = { token: "People with a token", everybody: "Everybody" };

function NewPreview({ workspace, sandbox, ports }: NewPreviewProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const [audience, setAudience] = useState("token");
  const refusal = useRefusal(workspace, "previewCreate");
  const port = typed ?? String(ports[0]?.port ?? "");
  const { run, busy, error } = useAction(async () => {
    const name = randomName(`port-${port}`);
    await createPreview(workspace, sandbox, { name, port: Number(port), isPublic: audience === "everybody" });
    setTyped(null);
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (port !== "" && refusal === null) void run(null);
      }}
    >
      <div class="command">
        <Field label="Port" type="number" value={port} onInput={setTyped} placeholder="8000" />
        <Choice
          label="For"
          value={audience}
          choices={Object.keys(AUDIENCES)}
          shown={(one) => AUDIENCES[one as keyof typeof AUDIENCES]}
          onInput={setAudience}
        />
        <Button kind="main" type="submit" busy={busy} unable={refusal ?? (port === "" ? "A port is missing" : null)}>
          <Icon name="plus" />
          Make a preview
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
    </form>
  );
}
