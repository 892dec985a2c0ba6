/** The people of an account, for its admins: adding people, removing people, and resetting lost passwords. */
import { z } from "zod";
import { defineOperation } from "../../contract/operation.ts";
import { email } from "../user/operations.ts";
import { done, newPassword } from "../user/self-operations.ts";

const NAME_MAX = 128;
const role = z.enum(["admin", "member"]);
const name = z.string().max(NAME_MAX).optional();

export const accountUserShape = z.looseObject({
  sub: z.string(),
  email: z.string(),
  given_name: z.string(),
  family_name: z.string(),
  email_verified: z.boolean(),
  role: role.describe("In the account; an admin of it administers all of its workspaces."),
  createdAt: z.string(),
});

const common = { kind: "accountuser", tenancy: "account", role: "admin", scope: "admin" } as const;
const PATH = "/accounts/{accountId}/users";

export const accountUserList = defineOperation({
  ...common,
  id: "accountUserList",
  method: "GET",
  path: PATH,
  summary: "List the people of the account",
  response: z.array(accountUserShape),
  verb: "list",
});

export const accountUserCreate = defineOperation({
  ...common,
  id: "accountUserCreate",
  method: "POST",
  path: PATH,
  summary: "Add a person to the account; they cannot sign in before a password is set",
  body: z.looseObject({ email, given_name: name, family_name: name, role: role.optional() }),
  response: accountUserShape,
  verb: "create",
});

export const accountUserUpdate = defineOperation({
  ...common,
  id: "accountUserUpdate",
  method: "PUT",
  path: `${PATH}/{subOrEmail}`,
  summary: "Change a person's role in the account",
  body: z.looseObject({ role }),
  response: accountUserShape,
  verb: "update",
});

export const accountUserDelete = defineOperation({
  ...common,
  id: "accountUserDelete",
  method: "DELETE",
  path: `${PATH}/{subOrEmail}`,
  summary: "Take a person out of the account and all of its workspaces; their keys and sessions stop",
  response: done,
  verb: "delete",
});

export const accountUserPassword = defineOperation({
  ...common,
  id: "accountUserPassword",
  method: "PUT",
  path: `${PATH}/{subOrEmail}/password`,
  summary: "Set the password of somebody who lost theirs; every session of theirs ends",
  body: z.looseObject({ newPassword }),
  response: done,
});

export const accountUserPasswordLink = defineOperation({
  ...common,
  id: "accountUserPasswordLink",
  method: "POST",
  path: `${PATH}/{subOrEmail}/password/link`,
  summary: "Make a link with which a person chooses a password, the first one or a new one",
  response: z.object({
    email: z.string(),
    url: z.string().describe("Hand it to the person. It works once, and not after the password has changed."),
    expiresAt: z.string(),
  }),
});

export const accountUserOperations = [
  accountUserList,
  accountUserCreate,
  accountUserUpdate,
  accountUserDelete,
  accountUserPassword,
  accountUserPasswordLink,
];
