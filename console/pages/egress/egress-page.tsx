/** The ways out of the workspace: workloads, the gateway that they leave by, and the addresses that others see. */
import "./egress.css";
import { call } from "../../api/call.ts";
import { useAnswer } from "../../api/query.ts";
import { countOf } from "../../lib/format.ts";
import { titleOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Badge } from "../../ui/badge.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Blank, Failure, Loading } from "../../ui/notice.tsx";
import { readRequest } from "../../views/lines.ts";
import { kindNamed, places, top } from "../../views/places.ts";
import { CopyAs } from "../copy-as.tsx";

interface Way {
  gateway: string;
  vpc: string;
  status: string;
  addresses: readonly { name: string; ip: string | null; status: string }[];
  workloads: readonly { kind: string; name: string }[];
  workloadCount: number;
}

const PATH = "/egressgateways/map";
const EVERY_MS = 10_000;

export function EgressPage({ workspace }: { workspace: string }) {
  const { data, error } = useAnswer({
    key: ["egress", workspace],
    everyMs: EVERY_MS,
    ask: (signal) => call<Way[]>({ path: PATH, workspace, signal }),
  });
  return (
    <>
      <div class="page-head">
        <h1>Egress</h1>
        <span class="quiet grow">{data ? countOf(data.length, "gateway") : ""}</span>
        <CopyAs asked={readRequest(workspace, "egressMapGet", PATH, "egress-map get")} />
      </div>
      {error ? <Failure error={error} /> : null}
      {data === undefined && !error ? <Loading /> : null}
      {data?.length === 0 ? (
        <Blank
          title="No gateways yet"
          text="Workloads leave from the server's own address. A gateway in a network gives them addresses of their own."
          line={`berth egressgateway create default/my-gateway -w ${workspace}`}
        />
      ) : null}
      {data?.length ? (
        <div class="ways" aria-hidden="true">
          <span>Workloads</span>
          <span>Gateway</span>
          <span>Addresses</span>
        </div>
      ) : null}
      <ul class="stack">
        {data?.map((way) => (
          <WayOut key={`${way.vpc} ${way.gateway}`} workspace={workspace} way={way} />
        ))}
      </ul>
    </>
  );
}

function WayOut({ workspace, way }: { workspace: string; way: Way }) {
  const { gateway, vpc, status, addresses, workloads, workloadCount } = way;
  const collection = { kind: kindNamed("egressgateway"), parents: [vpc] };
  return (
    <li class="way">
      <ul>
        {workloads.map(({ kind, name }) => (
          <li key={`${kind} ${name}`}>
            <a href={places.item(workspace, top(kind), name)}>{name}</a>{" "}
            <span class="quiet">{titleOf(kind).toLowerCase()}</span>
          </li>
        ))}
        {workloadCount > workloads.length ? (
          <li class="quiet">{countOf(workloadCount - workloads.length, "more workload")}</li>
        ) : null}
        {workloadCount === 0 ? <li class="quiet">No workload uses it</li> : null}
      </ul>
      <Icon name="right" />
      <div>
        <a href={places.item(workspace, collection, gateway)}>{gateway}</a>
        <p class="quiet">in {vpc}</p>
        <Badge tone={toneOf(status)}>{status}</Badge>
      </div>
      <Icon name="right" />
      <ul>
        {addresses.map(({ name, ip, status: state }) => (
          <li key={name} class="row">
            <code>{ip ?? "waits for an address"}</code>
            <Badge tone={toneOf(state)}>{state}</Badge>
          </li>
        ))}
        {addresses.length === 0 ? <li class="quiet">None: its workloads reach nothing</li> : null}
      </ul>
    </li>
  );
}
