/** The request whose answer a tab of the usage page shows, with the filters of the address. */
import { windowOf } from "../../api/usage.ts";
import { queryOf } from "../../lib/location.ts";
import { type Asked, readRequest } from "../../views/lines.ts";
import { SPANS } from "./spans.ts";

export function askedBy(tab: string, workspace: string, account: string): Asked {
  const path = `/accounts/${account}/metrics`;
  const params = { accountId: account };
  if (tab === "prices")
    return readRequest(workspace, "accountPrices", `${path}/prices`, `account prices ${account}`, {}, params);
  const [from, to] = [queryOf("from"), queryOf("to")];
  const window = from === "" || to === "" ? windowOf(SPANS[queryOf("span")] ?? 7) : { startTime: from, endTime: to };
  const times = `--start-time ${window.startTime} --end-time ${window.endTime}`;
  if (tab === "events") {
    const filter = {
      resourceType: queryOf("type"),
      resourceName: queryOf("name"),
      billingDimension: queryOf("dimension"),
    };
    const isFiltered = Object.values(filter).some((value) => value !== "");
    const command = isFiltered ? null : `account usage-events ${account} ${times}`;
    return readRequest(workspace, "accountUsageEvents", `${path}/events`, command, { ...window, ...filter }, params);
  }
  const groupBy = queryOf("by") || "billing_dimension";
  const command = `account metrics ${account} ${times} --group-by ${groupBy}`;
  return readRequest(workspace, "accountMetrics", path, command, { ...window, groupBy }, params);
}
