/** `berth passwd`: changes the user's own password or that of another user, or makes a link for setting one. */
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import type { Operation } from "../../contract/operation.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { memberAt } from "../json-path.ts";
import { operation } from "../sandbox-door.ts";
import { connect } from "./call-input.ts";

export async function setPassword(call: Invocation): Promise<undefined> {
  const { context } = call;
  const client = connect(call);
  const email = text(call.args[0]);
  if (call.options.link === true) return printLink(call, client, email);
  const [newPassword, currentPassword] = await askNew(call);
  if (email !== undefined) {
    const accountId = await ownAccount(client, operation("accountList"));
    const params = { accountId, subOrEmail: email };
    return said(call, await client.call(operation("accountUserPassword"), { params, body: { newPassword } }));
  }
  const set = (more: object) => client.call(operation("passwordSet"), { body: { newPassword, ...more } });
  try {
    return said(call, await set(currentPassword === undefined ? {} : { currentPassword }));
  } catch (error) {
    // Only the server knows whether these credentials require the current password.
    if (!(error instanceof ApiError && error.status === 403 && context.canAsk)) throw error;
    return said(call, await set({ currentPassword: (await context.askSecret("Current password: ")) ?? "" }));
  }
}

/** Prints the link on stdout, for scripts; explanations go to stderr. */
async function printLink({ context }: Invocation, client: Client, email: string | undefined): Promise<undefined> {
  if (email === undefined) throw new UsageError("--link is for somebody else.", "`berth passwd --link bo@example.com`");
  const params = { accountId: await ownAccount(client, operation("accountList")), subOrEmail: email };
  const made = await client.call(operation("accountUserPasswordLink"), { params });
  context.print(String(memberAt(made, "url")));
  context.note(
    `With this link ${memberAt(made, "email")} chooses a password, once, until ${memberAt(made, "expiresAt")}. Whoever has the link can.`,
  );
}

async function askNew({ context }: Invocation): Promise<[next: string, current: string | undefined]> {
  const typed = (await context.askSecret("New password: ")) ?? "";
  const [next = "", current] = typed.split(/\r?\n/);
  if (next === "") throw new UsageError("no password was given.", "type it when asked, or pipe it in");
  if (context.canAsk && (await context.askSecret("The same again: ")) !== next)
    throw new UsageError("that was not the same twice; nothing was changed.");
  return [next, current || undefined];
}

async function ownAccount(client: Client, accountList: Operation): Promise<string> {
  const own: string[] = [];
  for await (const account of client.items(accountList))
    if (memberAt(account, "role") === "admin") own.push(String(memberAt(account, "id")));
  const [only, second] = own;
  if (only !== undefined && second === undefined) return only;
  throw new UsageError(
    only === undefined ? "you administer no account." : "you administer several accounts.",
    "`berth call accountUserPassword --param accountId=… --param subOrEmail=…` names one",
  );
}

function said({ context }: Invocation, answer: unknown): undefined {
  context.note(String(memberAt(answer, "message")));
}
