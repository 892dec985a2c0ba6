/** The workspace itself, how the console looks here, and what the server offers. */
import "./settings.css";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction, useAnswer } from "../../api/query.ts";
import { changeWorkspace, createWorkspace, deleteWorkspace, useWorkspace } from "../../api/workspaces.ts";
import { timeOf } from "../../lib/format.ts";
import { go } from "../../lib/location.ts";
import { settings } from "../../lib/settings.ts";
import { THEMES, theme } from "../../lib/theme.ts";
import { labelOf } from "../../lib/titles.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Facts } from "../../ui/facts.tsx";
import { Choice, Field } from "../../ui/field.tsx";
import { Failure } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { workspaceRequest } from "../../views/lines.ts";
import { places } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { DeleteDialog } from "../list/delete-dialog.tsx";
import { Quotas } from "./quotas.tsx";

export function SettingsPage({ workspace }: { workspace: string }) {
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Settings</h1>
        <CopyAs asked={workspaceRequest(workspace)} />
      </div>
      <div class="settings">
        <div class="stack">
          <ThisWorkspace workspace={workspace} />
          <NewWorkspace />
          <Card title="This browser">
            <Choice
              label="Theme"
              value={theme.value}
              choices={THEMES}
              shown={labelOf}
              onInput={(next) => {
                theme.value = next;
              }}
            />
          </Card>
        </div>
        <div class="stack">
          <Quotas workspace={workspace} title="Room" />
          <Server workspace={workspace} />
        </div>
      </div>
    </>
  );
}

function ThisWorkspace({ workspace }: { workspace: string }) {
  const found = useWorkspace(workspace);
  const [draft, setDraft] = useState<string | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  const noChange = useRefusal(workspace, "workspaceUpdate");
  const noDelete = useRefusal(workspace, "workspaceDelete");
  const { run, busy, error } = useAction(async (displayName: string) => {
    await changeWorkspace(workspace, { displayName });
    setDraft(null);
    say("The workspace is changed.");
  });
  return (
    <Card title="This workspace">
      <div class="stack">
        <Facts
          facts={[
            ["Name", workspace],
            ["Region", found?.region ?? ""],
            ["Account", <code>{found?.accountId ?? ""}</code>],
            ["Created", timeOf(found?.createdAt ?? "")],
          ]}
        />
        <div class="settings-line">
          <Field label="Shown as" value={draft ?? found?.displayName ?? ""} onInput={setDraft} />
          <Button
            kind="main"
            busy={busy}
            unable={noChange ?? (draft === null ? "Nothing has changed" : null)}
            onClick={() => draft !== null && void run(draft)}
          >
            Save
          </Button>
        </div>
        {error ? <Failure error={error} /> : null}
        <div class="row">
          <Button kind="danger" unable={noDelete} onClick={() => setDeleting(true)}>
            Delete the workspace and everything in it
          </Button>
        </div>
      </div>
      {isDeleting ? (
        <DeleteDialog
          names={[workspace]}
          remove={deleteWorkspace}
          onClose={(isDone) => {
            setDeleting(false);
            if (isDone) location.assign(`${settings.base}/`);
          }}
        />
      ) : null}
    </Card>
  );
}

function NewWorkspace() {
  const [name, setName] = useState("");
  const { run, busy, error } = useAction(async () => {
    await createWorkspace(name);
    go(places.home(name));
  });
  return (
    <Card title="Another workspace">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (name !== "") void run(null);
        }}
      >
        <div class="settings-line">
          <Field label="Name of a new workspace" value={name} onInput={setName} />
          <Button type="submit" busy={busy} unable={name === "" ? "A name is missing" : null}>
            Create
          </Button>
        </div>
        {error ? <Failure error={error} /> : null}
      </form>
    </Card>
  );
}

interface Configuration {
  regions: readonly {
    name: string;
    isolation: {
      grade: string;
      grades?: readonly string[];
      limits?: readonly string[];
      outbound?: string;
      roots?: string;
    };
  }[];
}

function Server({ workspace }: { workspace: string }) {
  const { data, error } = useAnswer({
    key: ["configuration"],
    ask: (signal) => call<Configuration>({ path: "/configuration", workspace, signal }),
  });
  const region = data?.regions[0];
  return (
    <Card title="Server">
      {error ? <Failure error={error} /> : null}
      <Facts
        facts={[
          ["Version", settings.version],
          ["Address", settings.publicUrl],
          ["Region", region?.name ?? ""],
          ["Isolation", region?.isolation.grade ?? ""],
          ["On request", region?.isolation.grades?.join(", ") ?? ""],
          ["Limits held", region?.isolation.limits?.join(", ") ?? ""],
          ["Ways out", region?.isolation.outbound ?? ""],
          ["Roots", region?.isolation.roots ?? ""],
        ]}
      />
    </Card>
  );
}
