/** Servers, credentials, workspaces. */
import type { Operation } from "../../contract/operation.ts";
import { login, logout, token, workspaces } from "../actions/session.ts";
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";
import { REMOTE } from "./options.ts";

export function sessionCommands(operations: readonly Operation[]): CommandSpec[] {
  const group = GROUPS.session;
  const workspaceList = operations.find(({ id }) => id === "workspaceList");
  if (!workspaceList) throw new Error("the operation list has no workspaceList");
  return [
    {
      name: "login",
      group,
      summary: "remember a server and its API key",
      details:
        "The key is asked for, read from standard input, or taken from BERTH_API_KEY. It is checked before it is kept.",
      args: [{ name: "url", about: "address of the server", optional: true }],
      options: CONNECTION_OPTIONS,
      examples: ["berth login https://berth.example.com", "berth login http://10.0.0.5:8080 --profile lab < key.txt"],
      run: (call) => login(workspaceList, call),
    },
    {
      name: "logout",
      group,
      summary: "forget a server",
      options: CONNECTION_OPTIONS,
      examples: ["berth logout", "berth logout --profile lab"],
      run: logout,
    },
    {
      name: "workspaces",
      group,
      summary: "list the workspaces, or choose the one to work in",
      args: [{ name: "name", about: "work in this one from now on", optional: true }],
      options: REMOTE,
      examples: ["berth workspaces", "berth workspaces dev"],
      run: (call) => workspaces(workspaceList, call),
    },
    {
      name: "token",
      group,
      summary: "print the API key in use",
      options: CONNECTION_OPTIONS,
      examples: ['curl -H "Authorization: Bearer $(berth token)" http://127.0.0.1:8080/v0/drives'],
      run: token,
    },
  ];
}
