/** The snapshots of a sandbox and the sandboxes that were forked from them, as a tree. */
import "./sandbox.css";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { listChanged, useList } from "../../api/rows.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, timeOf } from "../../lib/format.ts";
import { createdAt, memberAt, nameOf, textAt } from "../../lib/members.ts";
import { toneOf } from "../../lib/tones.ts";
import { randomName } from "../../lib/words.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { places, top } from "../../views/places.ts";

/** Sandboxes among which forks are looked for: the newest page of the list. */
const SANDBOXES = "/sandboxes?limit=200";

export function SnapshotsTab({ workload: { workspace, name }, resource }: { workload: Workload; resource: unknown }) {
  const path = `/sandboxes/${encodeURIComponent(name)}/snapshots`;
  const { data, error } = useList<unknown>(workspace, path);
  const { data: sandboxes = [] } = useList<unknown>(workspace, SANDBOXES);
  const [removed, setRemoved] = useState<string | null>(null);
  const noTake = useRefusal(workspace, "snapshotCreate");
  const noFork = useRefusal(workspace, "sandboxFork");
  const noRemove = useRefusal(workspace, "snapshotDelete");
  const take = useAction(async () => {
    await call({ method: "POST", path, body: {}, workspace });
    say("The snapshot is taken.");
    await listChanged(workspace, path);
  });
  const fork = useAction(async (snapshotId: string | null) => {
    const body = { targetName: randomName(name), ...(snapshotId === null ? {} : { snapshotId }) };
    const made = await call<{ name: string }>({
      ...({ method: "POST", path: `/sandboxes/${encodeURIComponent(name)}/fork`, body, workspace } as const),
    });
    say(`${made.name} is forked.`);
    await Promise.all([listChanged(workspace, path), listChanged(workspace, SANDBOXES)]);
  });
  const remove = useAction(async (id: string) => {
    setRemoved(id);
    await call({ method: "DELETE", path: `${path}/${id}`, workspace });
    await listChanged(workspace, path);
  });
  const failure = error ?? take.error ?? fork.error ?? remove.error;
  const origin = textAt(resource, "forkedFrom.sandbox");
  return (
    <div class="stack">
      <div class="row">
        <Button kind="main" busy={take.busy} unable={noTake} onClick={() => void take.run(null)}>
          Take a snapshot
        </Button>
        <Button busy={fork.busy} unable={noFork} onClick={() => void fork.run(null)}>
          Fork as it is now
        </Button>
      </div>
      {failure ? <Failure error={failure} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 && origin === "" ? (
        <Blank
          title="No snapshots yet"
          text="A snapshot keeps the files of this moment; a fork is a new sandbox with them."
        />
      ) : null}
      {data === undefined || (data.length === 0 && origin === "") ? null : (
        <div class="card branches">
          {origin === "" ? null : (
            <p>
              <a href={`${places.item(workspace, top("sandbox"), origin)}?tab=snapshots`}>{origin}</a>{" "}
              <span class="quiet mono">{textAt(resource, "forkedFrom.snapshotId")}</span>
            </p>
          )}
          <ul class={origin === "" ? "" : "branch"}>
            <li>
              <div class="leaf">
                <Icon name="box" />
                <strong>{name}</strong>
                <span class="quiet">this sandbox</span>
              </div>
              <ul class="branch">
                {data.map((snapshot) => {
                  const [id, shown] = [textAt(snapshot, "id"), nameOf(snapshot)];
                  const status = textAt(snapshot, "status");
                  return (
                    <li key={id}>
                      <div class="leaf">
                        <Icon name="copy" />
                        <span class="mono">{shown}</span>
                        <Badge tone={toneOf(status)}>{status}</Badge>
                        <span class="quiet" title={timeOf(createdAt(snapshot))}>
                          {ageOf(createdAt(snapshot))}
                        </span>
                        <span class="grow" />
                        <Button kind="bare" unable={noFork} label={`Fork ${shown}`} onClick={() => void fork.run(id)}>
                          Fork
                        </Button>
                        <Button
                          kind="bare"
                          busy={remove.busy && removed === id}
                          unable={noRemove}
                          label={`Delete ${shown}`}
                          onClick={() => void remove.run(id)}
                        >
                          Delete
                        </Button>
                      </div>
                      <Forks workspace={workspace} sandboxes={sandboxes} snapshotId={id} />
                    </li>
                  );
                })}
              </ul>
            </li>
          </ul>
        </div>
      )}
    </div>
  );
}

function Forks({ workspace, sandboxes, snapshotId }: ForksProps) {
  const forks = sandboxes.filter((one) => memberAt(one, "forkedFrom.snapshotId") === snapshotId);
  if (forks.length === 0) return null;
  return (
    <ul class="branch">
      {forks.map((one) => (
        <li key={nameOf(one)}>
          <div class="leaf">
            <Icon name="box" />
            <a href={`${places.item(workspace, top("sandbox"), nameOf(one))}?tab=snapshots`}>{nameOf(one)}</a>
            <Badge tone={toneOf(textAt(one, "status"))}>{textAt(one, "status")}</Badge>
            <span class="quiet">{ageOf(createdAt(one))}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}

interface ForksProps {
  workspace: string;
  sandboxes: readonly unknown[];
  snapshotId: string;
}
