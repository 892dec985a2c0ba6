/** The images of a workspace: pull, look how far a pull is, delete. */
import "./images.css";
import { useState } from "preact/hooks";
import { cleanUp, deleteImage, type Image, imageId, imageTitle, pullImage, useImages } from "../../api/images.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { ageOf, bytesOf, countOf, timeOf } from "../../lib/format.ts";
import { go, queryOf, setQuery } from "../../lib/location.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { places } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { DeleteDialog } from "../list/delete-dialog.tsx";
import { CleanUpDialog } from "./clean-up-dialog.tsx";
import { ImagePage } from "./image-page.tsx";
import { Status, shortTag } from "./status.tsx";

export const imagePlace = (workspace: string, id: string): string =>
  `${places.page(workspace, "images")}?image=${encodeURIComponent(id)}`;

export function ImagesPage({ workspace }: { workspace: string }) {
  const id = queryOf("image");
  return id === "" ? <ImageList workspace={workspace} /> : <ImagePage key={id} workspace={workspace} id={id} />;
}

function ImageList({ workspace }: { workspace: string }) {
  const { data, error } = useImages(workspace);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<"delete" | "cleanUp" | null>(null);
  const noDelete = useRefusal(workspace, "imageDelete");
  const q = queryOf("q").toLowerCase();
  const rows = (data ?? []).filter((image) => `${imageTitle(image)} ${imageId(image)}`.toLowerCase().includes(q));
  return (
    <>
      <div class="page-head">
        <h1>Images</h1>
        <span class="quiet grow">{data === undefined ? "" : sumOf(data)}</span>
        <CopyAs
          asked={{
            ...{ method: "GET", path: "/images", workspace, operation: "imageList", params: {} },
            command: `berth image list -w ${workspace}`,
          }}
        />
        <Button unable={noDelete ?? (data?.length ? null : "There are no images")} onClick={() => setAsking("cleanUp")}>
          Delete unused
        </Button>
      </div>
      <Pull workspace={workspace} />
      {data !== undefined && data.length > 8 ? (
        <div class="filters">
          <input
            class="input"
            type="search"
            data-key="/"
            aria-label="Filter by name"
            placeholder="Filter by name"
            value={queryOf("q")}
            onInput={(event) => setQuery({ q: event.currentTarget.value })}
          />
        </div>
      ) : null}
      {picked.size === 0 ? null : (
        <div class="row">
          <span>{countOf(picked.size, "image")} picked</span>
          <Button kind="danger" unable={noDelete} onClick={() => setAsking("delete")}>
            <Icon name="trash" />
            Delete
          </Button>
        </div>
      )}
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? (
        <Blank
          title="No images yet"
          text="An image is pulled when the first workload uses it, or ahead of time with the form above."
          line={`berth image pull python:3.12 -w ${workspace}`}
        />
      ) : null}
      {rows.length === 0 ? null : (
        <Table
          label="Images"
          rows={rows}
          keyOf={imageId}
          picked={picked}
          onPick={setPicked}
          columns={[
            {
              title: "Image",
              look: "name",
              cell: (image) => <a href={imagePlace(workspace, imageId(image))}>{imageTitle(image)}</a>,
            },
            { title: "For", look: "wide", cell: ({ metadata }) => FOR[metadata.resourceType] ?? metadata.resourceType },
            { title: "Tags", look: "wide", cell: ({ spec }) => spec.tags.map(({ name }) => shortTag(name)).join(", ") },
            { title: "Size", look: "age", cell: ({ spec }) => (spec.size === undefined ? "" : bytesOf(spec.size)) },
            { title: "Status", cell: (image) => <Status image={image} /> },
            {
              title: "Age",
              look: "age",
              cell: ({ metadata }) => <span title={timeOf(metadata.createdAt)}>{ageOf(metadata.createdAt)}</span>,
            },
          ]}
        />
      )}
      {asking === "delete" ? (
        <DeleteDialog
          names={[...picked]}
          remove={(id) => deleteImage(workspace, id)}
          onClose={(isDone) => {
            setAsking(null);
            if (isDone) setPicked(new Set());
          }}
        />
      ) : null}
      {asking === "cleanUp" ? (
        <CleanUpDialog
          plan={() => cleanUp(workspace, true)}
          run={() => cleanUp(workspace, false)}
          onClose={() => setAsking(null)}
        />
      ) : null}
    </>
  );
}

const FOR: Readonly<Record<string, string>> = { registry: "any workload" };

const sumOf = (images: readonly Image[]): string =>
  [countOf(images.length, "image"), bytesOf(images.reduce((sum, { spec }) => sum + (spec.size ?? 0), 0))].join(", ");

function Pull({ workspace }: { workspace: string }) {
  const [reference, setReference] = useState("");
  const refusal = useRefusal(workspace, "imageCreate");
  const { run, busy, error } = useAction(async (image: string) => {
    go(imagePlace(workspace, await pullImage(workspace, image)));
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (reference.trim() !== "") void run(reference.trim());
      }}
    >
      <div class="pull-form">
        <Field
          label="Pull an image"
          value={reference}
          onInput={setReference}
          placeholder="python:3.12 or ghcr.io/acme/tool:1.2"
        />
        <Button kind="main" type="submit" busy={busy} unable={refusal}>
          Pull
        </Button>
      </div>
      {error ? <Failure error={error} /> : null}
    </form>
  );
}
