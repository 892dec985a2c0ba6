/** The DNS records that a domain needs, whether they were found, and its certificates. */
import "./domain.css";
import { call } from "../../api/call.ts";
import { useRefusal } from "../../api/overview.ts";
import { useAction } from "../../api/query.ts";
import { changed } from "../../api/resources.ts";
import { useList } from "../../api/rows.ts";
import type { Workload } from "../../api/workload.ts";
import { ageOf, timeOf } from "../../lib/format.ts";
import { isObject, memberAt, textAt } from "../../lib/members.ts";
import { sentenceOf } from "../../lib/titles.ts";
import { toneOf } from "../../lib/tones.ts";
import { Table } from "../../table/table.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { copy } from "../../ui/code.tsx";
import { Card } from "../../ui/facts.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Failure, Loading } from "../../ui/notice.tsx";
import { say } from "../../ui/toast.tsx";
import { top } from "../../views/places.ts";

interface DnsRecord {
  type: "TXT" | "CNAME";
  name: string;
  value: string;
}

interface Certificate {
  name: string;
  source: string;
  issuer?: string;
  notAfter?: string;
  renewsAt?: string;
  revokedAt?: string;
  failure?: string;
}

export function DomainTab({ workload: { workspace, name }, resource }: { workload: Workload; resource: unknown }) {
  const status = textAt(resource, "spec.status") || "pending";
  const reason = textAt(resource, "spec.verificationError");
  const checkedAt = textAt(resource, "spec.lastVerifiedAt");
  const refusal = useRefusal(workspace, "customDomainVerify");
  const verify = useAction(async () => {
    const path = `/customdomains/${encodeURIComponent(name)}/verify`;
    const found = await call<unknown>({ method: "POST", path, workspace });
    say(textAt(found, "spec.status") === "verified" ? `${name} is verified.` : `${name} is not verified yet.`);
    await changed(workspace, top("customdomain"));
  });
  return (
    <div class="stack">
      <Card title="Records to publish at your DNS provider">
        <div class="stack">
          <Table
            isStacked
            label="DNS records"
            rows={recordsOf(name, resource)}
            keyOf={({ type, name: host }) => `${type} ${host}`}
            columns={[
              { title: "Type", cell: ({ type }) => type },
              { title: "Name", look: "mono", cell: (row) => <Copied text={row.name} noun="The name" /> },
              { title: "Value", look: "mono", cell: (row) => <Copied text={row.value} noun="The value" /> },
            ]}
          />
          <div class="row">
            <Badge tone={status === "failed" ? "bad" : toneOf(status)}>{status}</Badge>
            <span class="quiet grow">
              {checkedAt === "" ? "Not looked up yet" : `Verified ${ageOf(checkedAt)} ago`}
            </span>
            <Button kind="main" busy={verify.busy} unable={refusal} onClick={() => void verify.run(null)}>
              <Icon name="check" />
              Verify
            </Button>
          </div>
          {reason === "" ? null : <p class="domain-reason">{sentenceOf(reason)}</p>}
          {verify.error ? <Failure error={verify.error} /> : null}
        </div>
      </Card>
      <Certificates workspace={workspace} name={name} />
    </div>
  );
}

/** Names below the domain lead to previews, the domain itself to an application. */
function recordsOf(name: string, resource: unknown): DnsRecord[] {
  const txt = memberAt(resource, "spec.txtRecords");
  const target = textAt(resource, "spec.cnameRecords");
  const host = textAt(resource, "spec.domainType") === "applications" ? name : `*.${name}`;
  return [
    ...Object.entries(isObject(txt) ? txt : {}).map(
      ([at, value]): DnsRecord => ({
        ...{ type: "TXT", name: at, value: String(value) },
      }),
    ),
    ...(target === "" ? [] : [{ type: "CNAME", name: host, value: target } as const]),
  ];
}

const Copied = ({ text, noun }: { text: string; noun: string }) => (
  <span class="copied">
    <span title={text}>{text}</span>
    <Button kind="bare" isIcon label={`Copy ${text}`} onClick={() => void copy(text, noun)}>
      <Icon name="copy" />
    </Button>
  </span>
);

function Certificates({ workspace, name }: { workspace: string; name: string }) {
  const { data, error } = useList<Certificate>(workspace, `/customdomains/${encodeURIComponent(name)}/certificates`);
  if (error) return <Failure error={error} />;
  if (data === undefined) return <Loading />;
  return (
    <Card title="Certificates">
      {data.length === 0 ? (
        <p class="quiet">
          None yet. A server that gets certificates itself asks for one when the domain is verified and first visited; a
          certificate of your own can be uploaded with <code>berth customdomain certificate-upload</code>.
        </p>
      ) : (
        <ul class="certificates">
          {data.map((one) => (
            <li key={`${one.name} ${one.source}`}>
              <code>{one.name}</code>
              <Badge tone={stateOf(one).tone}>{stateOf(one).word}</Badge>
              <span class="quiet grow">{aboutOf(one)}</span>
              {one.failure === undefined ? null : <p class="domain-reason">{sentenceOf(one.failure)}</p>}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function stateOf({ issuer, notAfter = "", revokedAt, failure }: Certificate) {
  if (revokedAt !== undefined) return { tone: "bad", word: "revoked" } as const;
  if (issuer === undefined)
    return failure === undefined
      ? ({ tone: "busy", word: "asked for" } as const)
      : ({ tone: "bad", word: "failed" } as const);
  return Date.parse(notAfter) > Date.now()
    ? ({ tone: "good", word: "valid" } as const)
    : ({ tone: "bad", word: "ended" } as const);
}

const aboutOf = ({ source, issuer, notAfter, renewsAt }: Certificate): string =>
  [
    source === "upload" ? "uploaded" : (issuer ?? "from an authority"),
    ...(notAfter === undefined ? [] : [`until ${timeOf(notAfter)}`]),
    ...(renewsAt === undefined ? [] : [`renewed ${timeOf(renewsAt)}`]),
  ].join(", ");
