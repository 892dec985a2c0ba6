/** Lists all operations of the contract, and calls any of them by name. */
import type { Operation } from "../../contract/operation.ts";
import { callOperation } from "../actions/operations.ts";
import { print } from "../actions/show.ts";
import { type CommandSpec, GROUPS, text } from "../command.ts";
import type { Noun } from "../nouns.ts";
import { OUTPUT_OPTION } from "../output.ts";
import { FILES, QUERY, REMOTE } from "./options.ts";

export const operationCommands = (nouns: readonly Noun[], operations: readonly Operation[]): CommandSpec[] => [
  {
    name: "kinds",
    group: GROUPS.resources,
    summary: "list the kinds of resources and what can be done with them",
    options: [OUTPUT_OPTION],
    examples: ["berth kinds"],
    run: (call) =>
      print(
        call,
        null,
        "table",
        nouns.map((noun) => ({ name: noun.name, verbs: [...noun.verbs.keys()].join(" "), summary: noun.summary })),
      ),
  },
  {
    name: "operations",
    group: GROUPS.more,
    summary: "list every operation of the API",
    args: [{ name: "filter", about: "only those with this in id or path", optional: true }],
    options: [OUTPUT_OPTION],
    examples: ["berth operations", "berth operations workspace -o json"],
    run: (call) => {
      const filter = (text(call.args[0]) ?? "").toLowerCase();
      const found = operations.filter(({ id, path }) => `${id} ${path}`.toLowerCase().includes(filter));
      const rows = found.map(({ id, method, path, scope, summary }) => ({
        id,
        method,
        path: `/v0${path}`,
        scope,
        summary,
      }));
      return print(call, null, "table", rows);
    },
  },
  {
    name: "call",
    group: GROUPS.more,
    summary: "call any operation by its id",
    args: [{ name: "operation", about: "an id from `berth operations`", offers: operations.map(({ id }) => id) }],
    options: [
      { flags: "--param <key=value>", about: "a path parameter", many: true },
      QUERY,
      { flags: "--data <json>", about: "the body, as JSON" },
      ...FILES,
      ...REMOTE,
    ],
    examples: [
      "berth call driveGet --param driveName=my-drive",
      'berth call workspaceAvailability --data \'{"name": "new"}\'',
    ],
    run: async (call) => callOperation(operations, call),
  },
];
