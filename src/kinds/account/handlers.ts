import { toIso } from "../../lib/time/clock.ts";
import { type Implementation, implement } from "../port.ts";
import { metricsHandlers } from "./metrics-handlers.ts";
import { accountList } from "./operations.ts";
import { accountUserHandlers } from "./user-handlers.ts";

export const accountHandlers: readonly Implementation[] = [
  implement(accountList, async ({ caller }, { store }) => {
    const accounts = await Promise.all(
      caller.accounts.map(async ({ id, role }) => ({ account: await store.people.getAccount(id), role })),
    );
    return accounts.flatMap(({ account, role }) =>
      account ? [{ id: account.id, name: account.name, role, createdAt: toIso(account.createdAt) }] : [],
    );
  }),
  ...accountUserHandlers,
  ...metricsHandlers,
];
