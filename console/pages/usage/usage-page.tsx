/** What was used and what it costs: over time, event by event, and at which prices. */
import { useAccount } from "../../api/usage.ts";
import { here, queryOf } from "../../lib/location.ts";
import { Tabs } from "../../ui/tabs.tsx";
import { CopyAs } from "../copy-as.tsx";
import { askedBy } from "./asked.ts";
import { Costs } from "./costs.tsx";
import { Events } from "./events.tsx";
import { Prices } from "./prices.tsx";

const TABS = [
  { id: "", title: "Costs", Page: Costs },
  { id: "events", title: "Events", Page: Events },
  { id: "prices", title: "Prices", Page: Prices },
];

export function UsagePage({ workspace }: { workspace: string }) {
  const account = useAccount(workspace);
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
        <h1 class="grow">Usage</h1>
        {account === "" ? null : <CopyAs asked={askedBy(tab?.id ?? "", workspace, account)} />}
      </div>
      <Tabs label="Usage" tabs={tabs} />
      {tab ? <tab.Page workspace={workspace} account={account} /> : null}
    </>
  );
}
