/** The servers of the platform, for admins of its first account: how full each is, and which gets no new workloads. */
import "./nodes.css";
import { useState } from "preact/hooks";
import { call } from "../../api/call.ts";
import { queries, useAction, useAnswer } from "../../api/query.ts";
import { ageOf, bytesOf, countOf, timeOf } from "../../lib/format.ts";
import { titleOf, withinSentence } from "../../lib/titles.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { Progress } from "../../ui/progress.tsx";
import { say } from "../../ui/toast.tsx";
import { CopyAs } from "../copy-as.tsx";
import { DeleteDialog } from "../list/delete-dialog.tsx";

interface Node {
  id: string;
  name: string;
  status: "live" | "lost";
  drained: boolean;
  isSelf: boolean;
  address?: string;
  version: string;
  driver: string;
  capabilities: readonly string[];
  cpus: number;
  memoryMb: number;
  usedMb: number;
  resources: Readonly<Record<string, number>>;
  startedAt: string;
  heartbeatAt: string;
}

const PATH = "/nodes";
const EVERY_MS = 5000;
const MB = 1024 * 1024;
/** Above this part of its memory a machine is nearly full. */
const FULL_FROM = 0.9;

export function NodesPage({ workspace }: { workspace: string }) {
  const key = ["nodes"];
  const { data, error } = useAnswer({
    key,
    everyMs: EVERY_MS,
    ask: (signal) => call<Node[]>({ path: PATH, workspace, signal }),
  });
  const [removed, setRemoved] = useState<Node | null>(null);
  const drain = useAction(async ({ id, name, drained }: Node) => {
    await call({ method: "POST", path: `${PATH}/${id}/${drained ? "undrain" : "drain"}`, workspace });
    say(
      drained
        ? `${name} gets new workloads again.`
        : `${name} hands its agents, functions, applications and jobs on; sandboxes stay.`,
    );
    await queries.invalidateQueries({ queryKey: key });
  });
  return (
    <>
      <div class="page-head">
        <h1>Nodes</h1>
        <span class="quiet grow">{data === undefined ? "" : countOf(data.length, "server")}</span>
        <CopyAs
          asked={{
            ...{ method: "GET", path: PATH, workspace, operation: "nodeList", params: {} },
            command: "berth node list",
          }}
        />
      </div>
      {error ? <Failure error={error} /> : null}
      {drain.error ? <Failure error={drain.error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      <div class="nodes">
        {data?.map((node) => (
          <NodeCard key={node.id} node={node} onDrain={() => void drain.run(node)} onRemove={() => setRemoved(node)} />
        ))}
      </div>
      {removed === null ? null : (
        <DeleteDialog
          names={[removed.name]}
          remove={async () => {
            await call({ method: "DELETE", path: `${PATH}/${removed.id}`, workspace });
            await queries.invalidateQueries({ queryKey: key });
          }}
          onClose={() => setRemoved(null)}
        />
      )}
    </>
  );
}

function NodeCard({ node, onDrain, onRemove }: { node: Node; onDrain(): void; onRemove(): void }) {
  const used = node.memoryMb === 0 ? 0 : node.usedMb / node.memoryMb;
  return (
    <section class="card" aria-label={node.name}>
      <div class="node-head">
        <h2>{node.name}</h2>
        <Badge tone={node.status === "live" ? "good" : "bad"}>{node.status}</Badge>
        {node.drained ? <Badge tone="busy">drained</Badge> : null}
        {node.isSelf ? <span class="quiet">answers this page</span> : null}
        <span class="grow" />
        <Button onClick={onDrain}>{node.drained ? "Undrain" : "Drain"}</Button>
        {node.status === "lost" ? (
          <Button kind="danger" onClick={onRemove}>
            Remove
          </Button>
        ) : null}
      </div>
      <div class="card-body stack">
        <div class="node-memory">
          <span>
            {bytesOf(node.usedMb * MB)} of {bytesOf(node.memoryMb * MB)} memory
          </span>
          <span class="quiet">{countOf(node.cpus, "CPU")}</span>
          <Progress label={`Memory of ${node.name}`} part={used} isBad={used > FULL_FROM} />
        </div>
        <Facts
          facts={[
            ["Workloads", workloadsOf(node)],
            ["Driver", node.driver],
            ["Can", node.capabilities.join(", ")],
            ["Address", node.address ?? ""],
            ["Version", node.version],
            ["Started", timeOf(node.startedAt)],
            ["Last heard of", node.isSelf ? "now" : `${ageOf(node.heartbeatAt)} ago`],
          ]}
        />
      </div>
    </section>
  );
}

const workloadsOf = ({ resources }: Node): string =>
  Object.entries(resources)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => countOf(count, withinSentence(titleOf(kind))))
    .join(", ") || "none";
