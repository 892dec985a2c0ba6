/** The outcome for each of several resources: a line at once, or all at the end in the requested format. */
import { type Invocation, text } from "../command.ts";
import { describeFailure, EXIT, exitCodeOf } from "../failure.ts";
import { type Format, render } from "../output.ts";

export type Outcome =
  | "created"
  | "configured"
  | "unchanged"
  | "deleted"
  | "not there"
  | "failed"
  | "valid"
  | "would be created"
  | "would be configured"
  | "would be deleted";

const WOULD_BE: Partial<Record<Outcome, Outcome>> = {
  created: "would be created",
  configured: "would be configured",
  deleted: "would be deleted",
};

/** The outcome's word in a dry run. */
export const wouldBe = (outcome: Outcome): Outcome => WOULD_BE[outcome] ?? outcome;

export interface Change {
  kind: string;
  name: string;
  outcome: Outcome;
  error?: unknown;
}

export function reportChange(change: Change, { context, options }: Invocation): Change {
  const line = `${change.kind} '${change.name}' ${change.outcome}`;
  if (change.outcome === "failed") context.note(`${line}\n${describeFailure(change.error)}`);
  else if (options.output === undefined) context.print(line);
  return change;
}

/**
 * Failures of one kind decide the exit code; failures of several kinds give the general one, and so does a refused
 * input among changes that were made: the code of wrong usage says that nothing was done.
 */
export async function finishChanges(changes: readonly Change[], call: Invocation): Promise<number | undefined> {
  const format = text(call.options.output) as Format | undefined;
  if (format) {
    const value = changes.map(({ error, ...change }) =>
      error ? { ...change, error: (error as Error).message } : change,
    );
    call.context.print(await render({ value, format }, call.context));
  }
  const failed = changes.filter(({ outcome }) => outcome === "failed");
  const [code, ...others] = new Set(failed.map(({ error }) => exitCodeOf(error)));
  if (code === EXIT.usage && failed.length < changes.length) return EXIT.failure;
  return others.length === 0 ? code : EXIT.failure;
}
