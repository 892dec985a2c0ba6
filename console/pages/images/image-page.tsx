/** One image: its tags, how far a pull is, and the workloads that use it. */
import "./images.css";
import { useState } from "preact/hooks";
import { deleteImage, deleteTag, type Image, imageTitle, isBusy, useImage } from "../../api/images.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { ageOf, bytesOf, timeOf } from "../../lib/format.ts";
import { go } from "../../lib/location.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card, Facts } from "../../ui/facts.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { Progress } from "../../ui/progress.tsx";
import { places } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { Events } from "../item/events.tsx";
import { ReferencesCard } from "../item/references-card.tsx";
import { DeleteDialog } from "../list/delete-dialog.tsx";
import { progressOf } from "./pull-progress.ts";
import { Status, shortTag } from "./status.tsx";

export function ImagePage({ workspace, id }: { workspace: string; id: string }) {
  const { data, error } = useImage(workspace, id);
  const [isDeleting, setDeleting] = useState(false);
  const noDelete = useRefusal(workspace, "imageDelete");
  const [resourceType = "", imageName = ""] = id.split("/");
  return (
    <>
      <div class="page-head">
        <h1>{data ? imageTitle(data) : imageName}</h1>
        {data ? <Status image={data} /> : null}
        <span class="grow" />
        <CopyAs
          asked={{
            ...{ method: "GET", path: `/images/${id}`, workspace, operation: "imageGet" },
            ...{ params: { resourceType, imageName }, command: `berth image get ${id} -w ${workspace}` },
          }}
        />
        {data ? (
          <Button kind="danger" label="Delete" unable={noDelete} onClick={() => setDeleting(true)}>
            <Icon name="trash" />
            <span class="long">Delete</span>
          </Button>
        ) : null}
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data ? <Parts workspace={workspace} id={id} image={data} /> : null}
      {isDeleting ? (
        <DeleteDialog
          names={[data ? imageTitle(data) : id]}
          remove={() => deleteImage(workspace, id)}
          onClose={(isDone) => {
            setDeleting(false);
            if (isDone) go(places.page(workspace, "images"));
          }}
        />
      ) : null}
    </>
  );
}

function Parts({ workspace, id, image }: { workspace: string; id: string; image: Image }) {
  const { metadata, spec } = image;
  const noDelete = useRefusal(workspace, "imageTagDelete");
  const remove = useAction((tag: string) => deleteTag(workspace, id, tag));
  const progress = isBusy(image) ? progressOf(metadata.events ?? []) : null;
  return (
    <>
      {progress === null ? null : (
        <div class="pulling" role="status">
          <span>{progress.text}</span>
          <Progress label="Pull" part={progress.part} />
        </div>
      )}
      {remove.error ? <Failure error={remove.error} /> : null}
      <Table
        label="Tags"
        rows={spec.tags}
        keyOf={({ name }) => name}
        columns={[
          { title: "Tag", look: "name", cell: ({ name }) => <span title={name}>{shortTag(name)}</span> },
          {
            title: "Reference",
            look: "wide mono",
            cell: ({ image: source = "" }) => <span title={source}>{source}</span>,
          },
          {
            title: "Digest",
            look: "wide mono",
            cell: ({ digest = "" }) => <span title={digest}>{digest.slice(0, 19)}</span>,
          },
          { title: "Size", look: "age", cell: ({ size }) => (size === undefined ? "" : bytesOf(size)) },
          {
            title: "Status",
            cell: ({ status = "" }) => (status === "" ? null : <Badge tone={toneOf(status)}>{status}</Badge>),
          },
          {
            title: "Changed",
            look: "age wide",
            cell: ({ updatedAt }) => <span title={timeOf(updatedAt)}>{ageOf(updatedAt)}</span>,
          },
          {
            title: "Actions",
            cell: ({ name }) => (
              <Button
                kind="bare"
                unable={noDelete ?? (spec.tags.length < 2 ? "The last tag goes with the image" : null)}
                onClick={() => void remove.run(name)}
              >
                Delete
              </Button>
            ),
          },
        ]}
      />
      <div class="item-grid">
        {metadata.events?.length ? <Events events={metadata.events} /> : <span />}
        <div class="stack">
          <Card title="About">
            <Facts
              facts={[
                ["Name", id],
                ["Shared by", metadata.sourceWorkspace ?? ""],
                ["Size", spec.size === undefined ? "" : bytesOf(spec.size)],
                ["Created", timeOf(metadata.createdAt)],
                ["Last deployed", timeOf(metadata.lastDeployedAt ?? "")],
              ]}
            />
          </Card>
          <ReferencesCard workspace={workspace} kind="image" name={id} />
        </div>
      </div>
    </>
  );
}
