/** `berth open`: a link to the console for the person whose credentials the command line has. */
import type { Operation } from "../../contract/operation.ts";
import type { Invocation } from "../command.ts";
import { memberAt } from "../json-path.ts";
import { connect } from "./call-input.ts";

export async function open(consoleLinkCreate: Operation, call: Invocation): Promise<undefined> {
  const link = await connect(call).call(consoleLinkCreate, {});
  call.context.print(String(memberAt(link, "url")));
}
