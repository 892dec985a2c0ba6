/** A resource of any kind: what it is, what happened to it, its parts, and its whole text. */
import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { deleteResource, useResource } from "../../api/resources.ts";
import { stays } from "../../lib/facts.ts";
import { go, here, queryOf } from "../../lib/location.ts";
import { statusOf } from "../../lib/members.ts";
import { type Collection, itemPath } from "../../lib/places.ts";
import { titleOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { type Tab, Tabs } from "../../ui/tabs.tsx";
import { getCommand } from "../../views/lines.ts";
import { partsOf, places } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { DeleteDialog } from "../list/delete-dialog.tsx";
import { Overview } from "./overview.tsx";
import { OWN_TABS } from "./own-tabs.ts";
import { Revisions } from "./revisions.tsx";
import { TextEditor } from "./text-editor.tsx";

export function ItemPage({ workspace, name, kind, parents }: { workspace: string; name: string } & Collection) {
  const collection = { kind, parents };
  const { data, error } = useResource(workspace, collection, name);
  const [isDeleting, setDeleting] = useState(false);
  const noRight = useRefusal(workspace, `${kind.name}Delete`);
  const noDelete = stays(kind, name) ?? noRight;
  const tab = queryOf("tab");
  const own = here.value.pathname;
  const ownTabs = parents.length === 0 ? (OWN_TABS[kind.name] ?? []) : [];
  const ownTab = ownTabs.find(({ id }) => id === tab);
  const tabs: Tab[] = [
    { title: "Overview", href: own, isHere: tab === "" },
    ...ownTabs.map(({ id, title }) => ({ title, href: `${own}?tab=${id}`, isHere: tab === id })),
    ...(kind.revisions ? [{ title: "Revisions", href: `${own}?tab=revisions`, isHere: tab === "revisions" }] : []),
    { title: "YAML", href: `${own}?tab=text`, isHere: tab === "text" },
    ...partsOf(kind)
      .filter(({ plural }) => !ownTabs.some(({ id }) => id === plural))
      .map((part) => ({
        title: titleOf(part.plural),
        href: places.list(workspace, { kind: part, parents: [...parents, name] }),
        isHere: false,
      })),
  ];
  const status = statusOf(data?.resource);
  const isUnknown = data === undefined && error !== null;
  return (
    <>
      <div class="page-head">
        <h1>{name}</h1>
        {status === "" ? null : <Badge tone={toneOf(status)}>{status}</Badge>}
        <span class="grow" />
        <CopyAs
          asked={{
            ...{ method: "GET", path: itemPath(collection, name), workspace, operation: `${kind.name}Get` },
            ...{ params: places.params(collection, name), command: getCommand(kind, parents, name, workspace) },
          }}
        />
        {kind.verbs.includes("delete") && !isUnknown ? (
          <Button kind="danger" label="Delete" unable={noDelete} onClick={() => setDeleting(true)}>
            <Icon name="trash" />
            <span class="long">Delete</span>
          </Button>
        ) : null}
      </div>
      {isUnknown ? null : <Tabs tabs={tabs} label={titleOf(kind.name)} />}
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data === undefined ? null : ownTab !== undefined ? (
        <ownTab.Page workload={{ workspace, plural: kind.plural, name }} resource={data.resource} />
      ) : tab === "text" ? (
        <TextEditor workspace={workspace} collection={collection} name={name} found={data} />
      ) : tab === "revisions" ? (
        <Revisions workspace={workspace} collection={collection} name={name} found={data} />
      ) : (
        <Overview resource={data.resource} workspace={workspace} kind={kind} name={name} />
      )}
      {isDeleting ? (
        <DeleteDialog
          names={[name]}
          remove={(one) => deleteResource(workspace, collection, one)}
          onClose={(isDone) => {
            setDeleting(false);
            if (isDone) go(places.list(workspace, collection));
          }}
        />
      ) : null}
    </>
  );
}
