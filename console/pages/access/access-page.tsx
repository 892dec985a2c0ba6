/** Who may do what: people and invitations, service accounts, keys, sessions, groups of an identity provider, and what was done. */
import type { ComponentType } from "preact";
import { here, queryOf } from "../../lib/location.ts";
import { Tabs } from "../../ui/tabs.tsx";
import { readRequest, workspaceRequest } from "../../views/lines.ts";
import { CopyAs } from "../copy-as.tsx";
import { Audit } from "./audit.tsx";
import { Keys } from "./keys.tsx";
import { People } from "./people.tsx";
import { ServiceAccounts } from "./service-accounts.tsx";
import { Sessions } from "./sessions.tsx";
import { SingleSignOn } from "./single-sign-on.tsx";

interface AccessTab {
  id: string;
  title: string;
  Page: ComponentType<{ workspace: string }>;
  /** The request that reads what the tab shows; null = the workspace itself. */
  read: readonly [operation: string, path: string, command: string] | null;
}

const TABS: readonly AccessTab[] = [
  { id: "", title: "People", Page: People, read: ["userList", "/users", "user list"] },
  {
    ...{ id: "accounts", title: "Service accounts", Page: ServiceAccounts },
    read: ["serviceAccountList", "/service_accounts", "service-account list"],
  },
  { id: "keys", title: "API keys", Page: Keys, read: ["apiKeyList", "/api_keys", "api-key list"] },
  { id: "sessions", title: "Sessions", Page: Sessions, read: ["sessionList", "/users/me/sessions", "session list"] },
  { id: "sso", title: "Single sign-on", Page: SingleSignOn, read: null },
  { id: "audit", title: "Audit", Page: Audit, read: ["auditList", "/audit", "audit list"] },
];

export function AccessPage({ workspace }: { workspace: string }) {
  const tab = TABS.find(({ id }) => id === queryOf("tab")) ?? TABS[0];
  const own = here.value.pathname;
  const tabs = TABS.map(({ id, title }) => ({
    title,
    href: id === "" ? own : `${own}?tab=${id}`,
    isHere: id === tab?.id,
  }));
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Access</h1>
        <CopyAs asked={tab?.read ? readRequest(workspace, ...tab.read) : workspaceRequest(workspace)} />
      </div>
      <Tabs label="Access" tabs={tabs} />
      {tab ? <tab.Page workspace={workspace} /> : null}
    </>
  );
}
