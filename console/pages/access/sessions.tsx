import { call } from "../../api/call.ts";
import { useAction } from "../../api/query.ts";
import { listChanged, useList } from "../../api/rows.ts";
import { ageOf, timeOf } from "../../lib/format.ts";
import { Table } from "../../table/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";

interface Session {
  id: string;
  type: "browser" | "program";
  client?: string;
  createdAt: string;
  expiresAt: string;
}

const PATH = "/users/me/sessions";

/** Browsers and programs that are signed in as this person. */
export function Sessions({ workspace }: { workspace: string }) {
  const { data, error } = useList<Session>(workspace, PATH);
  const end = useAction(async ({ id }: Session) => {
    await call({ method: "DELETE", path: `${PATH}/${id}`, workspace });
    await listChanged(workspace, PATH);
  });
  const failure = error ?? end.error;
  if (data === undefined && !failure) return <Loading />;
  return (
    <div class="stack">
      {failure ? <Failure error={failure} /> : null}
      <Table
        label="Sessions"
        rows={data ?? []}
        keyOf={({ id }) => id}
        columns={[
          { title: "Who", look: "name", cell: nameOf },
          { title: "Since", look: "age", cell: ({ createdAt }) => ageOf(createdAt) },
          { title: "Ends", look: "wide", cell: ({ expiresAt }) => timeOf(expiresAt) },
          {
            title: "Actions",
            cell: (session) => (
              <Button kind="bare" onClick={() => void end.run(session)}>
                Sign out
              </Button>
            ),
          },
        ]}
      />
    </div>
  );
}

function nameOf({ type, client = "" }: Session): string {
  if (client.endsWith("-console")) return "A console";
  return type === "browser" ? "A browser" : client;
}
