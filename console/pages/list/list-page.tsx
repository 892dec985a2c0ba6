/** The list of any kind. Filters and order are in the address. */
import "./list.css";
import { useState } from "preact/hooks";
import { useRefusal } from "../../api/overview.ts";
import { useRows } from "../../api/pages.ts";
import { deleteResource } from "../../api/resources.ts";
import { countOf } from "../../lib/format.ts";
import { queryOf, setQuery } from "../../lib/location.ts";
import { nameOf } from "../../lib/members.ts";
import { type Collection, collectionPath } from "../../lib/places.ts";
import { titleOf, withinSentence } from "../../lib/titles.ts";
import { Table } from "../../table/table.tsx";
import { Button, LinkButton } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { Cell } from "../../views/cell.tsx";
import { columnsOf } from "../../views/columns.ts";
import { firstCommand, listCommand } from "../../views/lines.ts";
import { places } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { ListJump } from "./list-jump.tsx";
import { listQuery } from "./list-query.ts";

/** Lists above it offer jumps; shorter ones are one page. */
const LONG_ROWS = 200;

const STATUSES = ["DEPLOYED", "DEPLOYING", "BUILDING", "FAILED", "DEACTIVATED", "TERMINATED"];
const SORTS: readonly (readonly [value: string, title: string])[] = [
  ["", "Newest first"],
  ["createdAt:asc", "Oldest first"],
  ["name:asc", "By name"],
  ["name:desc", "By name, backwards"],
];

export function ListPage({ workspace, kind, parents }: { workspace: string } & Collection) {
  const collection = { kind, parents };
  const query = listQuery();
  const isFiltered = query.q !== "" || query.status !== "";
  const from = queryOf("from");
  const { rows, total, error, isLoading, place, more, earlier } = useRows(workspace, collection, query, from);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [isDeleting, setDeleting] = useState(false);
  const create = kind.verbs.includes("create") ? places.create(workspace, collection) : null;
  const noCreate = useRefusal(workspace, `${kind.name}Create`);
  const noDelete = useRefusal(workspace, `${kind.name}Delete`);
  const canOpen = kind.verbs.includes("get");
  return (
    <>
      <div class="page-head">
        <h1>{titleOf(kind.plural)}</h1>
        <span class="quiet grow">{total === null || isLoading ? "" : countOf(total, "resource")}</span>
        <CopyAs
          asked={{
            ...{ method: "GET", path: collectionPath(collection), workspace, operation: `${kind.name}List` },
            ...{ params: places.params(collection), command: listCommand(kind, parents, workspace) },
          }}
        />
        {create === null ? null : (
          <span data-key="c">
            <LinkButton kind="main" href={create} unable={noCreate}>
              <Icon name="plus" />
              New
            </LinkButton>
          </span>
        )}
      </div>
      {kind.paged && (rows.length > 0 || isFiltered) ? <Filters query={query} /> : null}
      {kind.paged && (total ?? 0) > LONG_ROWS ? (
        <ListJump workspace={workspace} collection={collection} query={query} from={from} />
      ) : null}
      {picked.size === 0 ? null : (
        <div class="row">
          <span>{countOf(picked.size, "resource")} picked</span>
          <Button kind="danger" unable={noDelete} onClick={() => setDeleting(true)}>
            <Icon name="trash" />
            Delete
          </Button>
        </div>
      )}
      {error ? <Failure error={error} /> : null}
      {isLoading && !error ? <Loading /> : null}
      {!isLoading && !error && rows.length === 0 ? (
        isFiltered ? (
          <Blank title="Nothing matches" text="No resource has this text and status.">
            <Button onClick={() => setQuery({ q: "", status: "" })}>Show all</Button>
          </Blank>
        ) : (
          <Blank
            title={`No ${withinSentence(titleOf(kind.plural))} yet`}
            text={`${kind.summary}.`}
            line={firstCommand(kind, workspace)}
          >
            {create === null ? null : (
              <LinkButton kind="main" href={create} unable={noCreate}>
                Create one
              </LinkButton>
            )}
          </Blank>
        )
      ) : null}
      {rows.length === 0 ? null : (
        <Table
          isSteady
          label={titleOf(kind.plural)}
          rows={rows}
          keyOf={nameOf}
          onEnd={more}
          onStart={earlier}
          place={place}
          columns={columnsOf(kind.name).map((column) => ({
            title: column.title,
            look: `${column.as ?? ""}${column.wide ? " wide" : ""}`.trim(),
            cell: (row: unknown) => (
              <Cell column={column} row={row} href={canOpen ? places.item(workspace, collection, nameOf(row)) : null} />
            ),
          }))}
          {...(kind.verbs.includes("delete") ? { picked, onPick: setPicked } : {})}
        />
      )}
      {isDeleting ? (
        <DeleteDialog
          names={[...picked]}
          remove={(name) => deleteResource(workspace, collection, name)}
          onClose={(isDone) => {
            setDeleting(false);
            if (isDone) setPicked(new Set());
          }}
        />
      ) : null}
    </>
  );
}

function Filters({ query }: { query: { q: string; status: string; sort: string } }) {
  return (
    <div class="filters">
      <input
        class="input"
        type="search"
        data-key="/"
        aria-label="Filter by name or label"
        placeholder="Filter by name or label"
        value={query.q}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      <select
        class="input"
        aria-label="Status"
        value={query.status}
        onChange={(event) => setQuery({ status: event.currentTarget.value })}
      >
        <option value="">Every status</option>
        {STATUSES.map((status) => (
          <option key={status}>{status}</option>
        ))}
      </select>
      <select
        class="input"
        aria-label="Order"
        value={query.sort}
        onChange={(event) => setQuery({ sort: event.currentTarget.value, from: "" })}
      >
        {SORTS.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </div>
  );
}
