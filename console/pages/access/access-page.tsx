/** Who may do what: people and invitations, service accounts, keys, sessions, groups of an identity provider, and what was done. */
import { here, queryOf } from "../../lib/location.ts";
import { Tabs } from "../../ui/tabs.tsx";
import { Audit } from "./audit.tsx";
import { Keys } from "./keys.tsx";
import { People } from "./people.tsx";
import { ServiceAccounts } from "./service-accounts.tsx";
import { Sessions } from "./sessions.tsx";
import { SingleSignOn } from "./single-sign-on.tsx";

const TABS = [
  { id: "", title: "People", Page: People },
  { id: "accounts", title: "Service accounts", Page: ServiceAccounts },
  { id: "keys", title: "API keys", Page: Keys },
  { id: "sessions", title: "Sessions", Page: Sessions },
  { id: "sso", title: "Single sign-on", Page: SingleSignOn },
  { id: "audit", title: "Audit", Page: Audit },
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
      <h1>Access</h1>
      <Tabs label="Access" tabs={tabs} />
      {tab ? <tab.Page workspace={workspace} /> : null}
    </>
  );
}
