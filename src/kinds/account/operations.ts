import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { metricsOperations } from "./metrics-operations.ts";
import { accountUserOperations } from "./user-operations.ts";

export const accountList = defineOperation({
  id: "accountList",
  method: "GET",
  path: "/accounts",
  summary: "List your accounts, with your role in each",
  tenancy: "caller",
  scope: null,
  role: "member",
  response: z.array(
    z.object({ id: z.string(), name: z.string(), role: z.enum(["admin", "member"]), createdAt: z.string() }),
  ),
  kind: "account",
  verb: "list",
});

export const accountOperations = [accountList, ...accountUserOperations, ...metricsOperations];
