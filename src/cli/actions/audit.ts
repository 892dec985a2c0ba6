import { accountAudit, auditList, auditVerify } from "../../kinds/audit/operations.ts";
import { type Invocation, text } from "../command.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { connect, positiveNumber } from "./call-input.ts";
import { print } from "./show.ts";

/** The server's largest page size. */
const PAGE_LIMIT = 200;
const SHOWN_DEFAULT = 50;

export async function listAudit(call: Invocation): Promise<undefined> {
  const most = positiveNumber(call.options.limit, "--limit") ?? SHOWN_DEFAULT;
  const lines: unknown[] = [];
  for await (const line of linesOf(call)) if (lines.push(line) >= most) break;
  const rows = lines.map((line) => ({
    id: memberAt(line, "id"),
    time: memberAt(line, "time"),
    actor: memberAt(line, "actor.name") || memberAt(line, "actor.type"),
    action: memberAt(line, "action"),
    target: memberAt(line, "target"),
    in: memberAt(line, "workspace"),
    outcome: memberAt(line, "outcome"),
    from: memberAt(line, "sourceAddress"),
  }));
  return print(call, null, "table", call.options.output === undefined ? rows : lines);
}

export async function exportAudit(call: Invocation): Promise<undefined> {
  for await (const line of linesOf(call)) call.context.print(JSON.stringify(line));
}

function linesOf(call: Invocation): AsyncGenerator<unknown, void> {
  const { account, actor, action, outcome, startTime, endTime } = call.options;
  const query = {
    limit: PAGE_LIMIT,
    actor: text(actor),
    action: text(action),
    outcome: text(outcome),
    startTime: text(startTime),
    endTime: text(endTime),
  };
  const accountId = text(account);
  return accountId === undefined
    ? connect(call).items(auditList, { query })
    : connect(call).items(accountAudit, { params: { accountId }, query });
}

export async function verifyAudit(call: Invocation): Promise<number | undefined> {
  const check = await connect(call).call(auditVerify);
  if (!check.intact) {
    call.context.note(`berth: line ${check.brokenAt} is not as it was written; ${check.lines} before it are.`);
    return EXIT.failure;
  }
  call.context.print(`${check.lines} lines from ${check.firstId} on are as they were written`);
  call.context.print(`last: ${check.lastId} ${check.lastHash}`);
}
