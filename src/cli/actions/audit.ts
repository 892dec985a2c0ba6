import { type Invocation, text } from "../command.ts";
import { EXIT } from "../failure.ts";
import { operation } from "../sandbox-door.ts";
import { connect, queryFrom } from "./call-input.ts";

/** The largest page that the log gives. */
const PAGE_LIMIT = 200;

export async function auditLines(call: Invocation): Promise<undefined> {
  const accountId = text(call.options.account);
  const query = { limit: PAGE_LIMIT, ...queryFrom(call) };
  const lines =
    accountId === undefined
      ? connect(call).items(operation("auditList"), { query })
      : connect(call).items(operation("accountAudit"), { params: { accountId }, query });
  for await (const line of lines) call.context.print(JSON.stringify(line));
}

export async function verifyAudit(call: Invocation): Promise<number | undefined> {
  const check = (await connect(call).call(operation("auditVerify"))) as {
    intact: boolean;
    firstId: number;
    lines: number;
    brokenAt: number | null;
    lastId: number;
    lastHash: string;
  };
  if (!check.intact) {
    call.context.note(`berth: line ${check.brokenAt} is not as it was written; ${check.lines} before it are.`);
    return EXIT.failure;
  }
  call.context.print(`${check.lines} lines from ${check.firstId} on are as they were written`);
  call.context.print(`last: ${check.lastId} ${check.lastHash}`);
}
