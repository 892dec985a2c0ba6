/** The verb-first commands: `berth get drive my-drive`. */
import { create, getOrList, list, remove } from "../actions/resources.ts";
import { type ArgumentSpec, type CommandSpec, GROUPS, type Invocation, text, texts } from "../command.ts";
import { findNoun, type Noun } from "../nouns.ts";
import { DRY_RUN, FILES, LISTING, MEMBERS, QUERY, REMOTE, VALIDATE, WATCH, YES } from "./options.ts";

const manifests = () => import("../actions/manifests.ts");

const KIND: ArgumentSpec = { name: "kind", about: "the kind of resource, singular or plural", offers: "kind" };
const NAME: ArgumentSpec = {
  name: "name",
  about: "its name; parent/name for nested kinds",
  optional: true,
  offers: "name",
};

const APPLY_DETAILS = `Each resource is replaced, or created when it does not exist. Variables are filled in from the environment:
$NAME, \${NAME}, \${NAME:default}; $$ is a dollar sign.`;

export function resourceCommands(nouns: readonly Noun[]): CommandSpec[] {
  const group = GROUPS.resources;
  const nounOf = ({ args }: Invocation): Noun => findNoun(nouns, text(args[0]) ?? "");
  return [
    {
      name: "list",
      group,
      summary: "list resources of a kind",
      args: [KIND, { name: "parent", about: "what contains them, for nested kinds", optional: true, offers: "name" }],
      options: [...LISTING, QUERY, ...WATCH, ...REMOTE],
      examples: [
        "berth list drives",
        "berth list drives --sort name:asc -o json",
        "berth list drives -q report --watch",
      ],
      run: async (call) => list(nounOf(call), text(call.args[1]) ?? "", call),
    },
    {
      name: "get",
      group,
      summary: "show one resource, or list them",
      args: [KIND, NAME],
      options: [QUERY, ...WATCH, ...REMOTE],
      examples: ["berth get drive my-drive", "berth get drive my-drive -o yaml > my-drive.yaml", "berth get drives"],
      run: async (call) => getOrList(nounOf(call), text(call.args[1]), call),
    },
    {
      name: "create",
      group,
      summary: "create a resource",
      details: "One that exists already is an error; `berth apply` creates or replaces.",
      args: [
        { ...KIND, optional: true },
        { ...NAME, offers: [] },
      ],
      options: [...MEMBERS, ...FILES, QUERY, ...REMOTE],
      examples: ["berth create drive my-drive --set spec.size=1024 --label team=red", "berth create -f resources.yaml"],
      run: async (call) =>
        call.args[0] === undefined
          ? (await manifests()).createFiles(nouns, call)
          : create(nounOf(call), text(call.args[1]) ?? "", call),
    },
    {
      name: "apply",
      group,
      summary: "create or replace what files describe",
      details: APPLY_DETAILS,
      options: [...FILES, DRY_RUN, VALIDATE, ...REMOTE],
      examples: [
        "berth apply -f platform.yaml",
        "SIZE=10 berth apply -f - < drive.yaml",
        "berth apply -f folder --dry-run",
        "berth apply -f platform.yaml --validate",
      ],
      run: async (call) => (await manifests()).applyFiles(nouns, call),
    },
    {
      name: "delete",
      group,
      summary: "delete resources, by name or as files describe them",
      args: [
        { ...KIND, optional: true },
        { ...NAME, many: true },
      ],
      options: [...FILES, DRY_RUN, YES, QUERY, ...REMOTE],
      examples: ["berth delete drive my-drive other-drive", "berth delete -f platform.yaml"],
      run: async (call) =>
        call.args[0] === undefined
          ? (await manifests()).deleteFiles(nouns, call)
          : remove(nounOf(call), texts(call.args[1]), call),
    },
  ];
}
