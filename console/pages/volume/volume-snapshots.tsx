/** The snapshots of a volume: take, restore to a new volume, delete, take by a schedule; and clones. */
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { updateResource } from "../../api/resources.ts";
import { listChanged, useList } from "../../api/rows.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, bytesOf } from "../../lib/format.ts";
import { go } from "../../lib/location.ts";
import { createdAt, isObject, type Json, nameOf, textAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { randomName } from "../../lib/words.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Card } from "../../ui/facts.tsx";
import { Field } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { places, top } from "../../views/places.ts";
import "../settings/settings.css";

const MB = 2 ** 20;

export interface VolumeSnapshotsProps {
  workload: Workload;
  resource: unknown;
}

export function VolumeSnapshotsTab({ workload: { workspace, name }, resource }: VolumeSnapshotsProps) {
  const path = `/volumes/${encodeURIComponent(name)}/snapshots`;
  const { data, error } = useList<unknown>(workspace, path);
  /** A snapshot's id, or null for a clone of the volume as it is now. */
  const [copied, setCopied] = useState<{ snapshotId: string | null } | null>(null);
  const noTake = useRefusal(workspace, "volumesnapshotCreate");
  const noCopy = useRefusal(workspace, "volumeRestore");
  const noDelete = useRefusal(workspace, "volumesnapshotDelete");
  const take = useAction(async () => {
    await call({ method: "POST", path, body: {}, workspace });
    say("The snapshot is taken.");
    await listChanged(workspace, path);
  });
  const remove = useAction(async (id: string) => {
    await call({ method: "DELETE", path: `${path}/${id}`, workspace });
    say(`${id} is deleted.`);
    await listChanged(workspace, path);
  });
  const failure = error ?? take.error ?? remove.error;
  return (
    <div class="stack">
      <div class="row">
        <Button kind="main" busy={take.busy} unable={noTake} onClick={() => void take.run(null)}>
          <Icon name="copy" />
          Take a snapshot
        </Button>
        <Button unable={noCopy} onClick={() => setCopied({ snapshotId: null })}>
          Clone as it is now
        </Button>
      </div>
      {failure ? <Failure error={failure} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? (
        <Blank
          title="No snapshots yet"
          text="A snapshot keeps the files of this moment; it is restored to a new volume."
          line={`berth volumesnapshot create ${name}/ -w ${workspace}`}
        />
      ) : null}
      {data?.length ? (
        <Table
          label="Snapshots"
          rows={data}
          keyOf={(row) => textAt(row, "id")}
          columns={[
            { title: "Snapshot", look: "name mono", cell: nameOf },
            {
              title: "Status",
              cell: (row) => <Badge tone={toneOf(textAt(row, "status"))}>{textAt(row, "status")}</Badge>,
            },
            { title: "Stored", look: "wide", cell: (row) => bytesOf(Number(textAt(row, "storedMb") || "0") * MB) },
            { title: "By", look: "wide", cell: (row) => textAt(row, "createdBy") },
            { title: "Age", look: "age", cell: (row) => ageOf(createdAt(row)) },
            {
              title: "Actions",
              cell: (row) => (
                <span class="row">
                  <Button
                    kind="bare"
                    unable={noCopy ?? (textAt(row, "status") === "ready" ? null : "It is not ready")}
                    label={`Restore ${nameOf(row)}`}
                    onClick={() => setCopied({ snapshotId: textAt(row, "id") })}
                  >
                    Restore
                  </Button>
                  <Button
                    kind="bare"
                    unable={noDelete}
                    label={`Delete ${nameOf(row)}`}
                    onClick={() => void remove.run(textAt(row, "id"))}
                  >
                    Delete
                  </Button>
                </span>
              ),
            },
          ]}
        />
      ) : null}
      <Schedule workspace={workspace} name={name} resource={resource} />
      {copied === null ? null : (
        <CopyDialog workspace={workspace} name={name} snapshotId={copied.snapshotId} onClose={() => setCopied(null)} />
      )}
    </div>
  );
}

interface CopyDialogProps {
  workspace: string;
  name: string;
  snapshotId: string | null;
  onClose(): void;
}

function CopyDialog({ workspace, name, snapshotId, onClose }: CopyDialogProps) {
  const [targetName, setTargetName] = useState(randomName(name));
  const { run, busy, error } = useAction(async () => {
    const verb = snapshotId === null ? "clone" : "restore";
    const body = { targetName, ...(snapshotId === null ? {} : { snapshotId }) };
    await call({ method: "POST", path: `/volumes/${encodeURIComponent(name)}/${verb}`, body, workspace });
    say(`${targetName} is made.`);
    onClose();
    go(places.item(workspace, top("volume"), targetName));
  });
  return (
    <Dialog
      title={snapshotId === null ? `Clone ${name}` : `Restore ${snapshotId}`}
      onClose={onClose}
      foot={
        <Button
          kind="main"
          busy={busy}
          unable={targetName === "" ? "A name is missing" : null}
          onClick={() => void run(null)}
        >
          Make the volume
        </Button>
      }
    >
      <div class="stack">
        <p>The files go to a new volume of the same size; {name} stays as it is.</p>
        <Field label="Name of the new volume" value={targetName} onInput={setTargetName} />
        {error ? <Failure error={error} /> : null}
      </div>
    </Dialog>
  );
}

function Schedule({ workspace, name, resource }: { workspace: string; name: string; resource: unknown }) {
  const known = {
    schedule: textAt(resource, "spec.snapshots.schedule"),
    keep: textAt(resource, "spec.snapshots.keep"),
  };
  const [draft, setDraft] = useState<typeof known | null>(null);
  const refusal = useRefusal(workspace, "volumeUpdate");
  const { run, busy, error } = useAction(async ({ schedule, keep }: typeof known) => {
    const snapshots = schedule === "" ? undefined : { schedule, ...(keep === "" ? {} : { keep: Number(keep) }) };
    await updateResource(workspace, top("volume"), name, withSnapshots(resource, snapshots), null);
    setDraft(null);
    say(schedule === "" ? "No snapshots are taken by themselves." : "The schedule is kept.");
  });
  const shown = draft ?? known;
  return (
    <Card title="Snapshots by themselves">
      <div class="stack">
        <Field
          label="Schedule"
          value={shown.schedule}
          placeholder="0 3 * * *"
          hint="Five cron fields, in UTC. Empty: none are taken."
          onInput={(schedule) => setDraft({ ...shown, schedule })}
        />
        <div class="settings-line">
          <Field
            label="Keep the newest"
            type="number"
            value={shown.keep}
            placeholder="7"
            onInput={(keep) => setDraft({ ...shown, keep })}
          />
          <Button
            kind="main"
            busy={busy}
            unable={refusal ?? (draft === null ? "Nothing has changed" : null)}
            onClick={() => draft && void run(draft)}
          >
            Save
          </Button>
        </div>
        {error ? <Failure error={error} /> : null}
      </div>
    </Card>
  );
}

function withSnapshots(resource: unknown, snapshots: object | undefined): Json {
  const { metadata, spec } = isObject(resource) ? resource : {};
  const { snapshots: _before, ...rest } = isObject(spec) ? spec : {};
  const { name, displayName, labels } = isObject(metadata) ? metadata : {};
  return { metadata: { name, displayName, labels }, spec: { ...rest, ...(snapshots ? { snapshots } : {}) } };
}
