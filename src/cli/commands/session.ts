/** Servers, credentials, workspaces. */
import type { Operation } from "../../contract/operation.ts";
import { CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";
import { OUTPUT_OPTION } from "../output.ts";
import { REMOTE } from "./options.ts";

export function sessionCommands(operations: readonly Operation[]): CommandSpec[] {
  const group = GROUPS.session;
  const workspaceList = operations.find(({ id }) => id === "workspaceList");
  if (!workspaceList) throw new Error("the operation list has no workspaceList");
  const consoleLinkCreate = operations.find(({ id }) => id === "consoleLinkCreate");
  if (!consoleLinkCreate) throw new Error("the operation list has no consoleLinkCreate");
  return [
    {
      name: "login",
      group,
      summary: "sign in to a server and remember it",
      details:
        "At a terminal you sign in in a browser, on any device. Otherwise, or with --key, an API key is asked for, read from\nstandard input, or taken from BERTH_API_KEY. It is checked before it is kept. The server on this machine\nneeds neither.",
      args: [{ name: "url", about: "address of the server", optional: true }],
      options: [
        { flags: "--browser", about: "sign in in a browser even though this is no terminal" },
        { flags: "--key", about: "use an API key instead of a browser" },
        ...CONNECTION_OPTIONS,
      ],
      examples: ["berth login https://berth.example.com", "berth login http://10.0.0.5:8080 --profile lab < key.txt"],
      run: async (call) => (await import("../actions/session.ts")).login(workspaceList, call),
    },
    {
      name: "logout",
      group,
      summary: "sign out of a server and forget it",
      options: CONNECTION_OPTIONS,
      examples: ["berth logout", "berth logout --profile lab"],
      run: async (call) => (await import("../actions/session.ts")).logout(call),
    },
    {
      name: "trust",
      group,
      summary: "trust a server that signs its own certificates (BERTH_TLS=auto)",
      details:
        "The server printed the fingerprint of its authority when it started. Only a server with that fingerprint is trusted:\nby berth, and by browsers of this user where certutil is installed. The server on this machine needs no fingerprint.",
      args: [{ name: "url", about: "address of the server" }],
      options: [
        { flags: "--fingerprint <sha256>", about: "SHA-256 of the authority, as the server printed it" },
        { flags: "--remove", about: "trust the server no longer" },
      ],
      examples: [
        "berth trust https://machine.local:8080 --fingerprint 4E:0D:…",
        "berth trust https://machine.local:8080 --remove",
      ],
      run: async (call) => (await import("../actions/trust.ts")).trust(call),
    },
    {
      name: "open",
      group,
      summary: "print a link that opens the console, signed in as you",
      details: "The link works once, within 30 minutes.",
      options: CONNECTION_OPTIONS,
      examples: ["berth open", "xdg-open $(berth open)"],
      run: async (call) => (await import("../actions/open.ts")).open(consoleLinkCreate, call),
    },
    {
      name: "workspaces",
      group,
      summary: "list the workspaces, or choose the one to work in",
      args: [{ name: "name", about: "work in this one from now on", optional: true }],
      options: REMOTE,
      examples: ["berth workspaces", "berth workspaces dev"],
      run: async (call) => (await import("../actions/session.ts")).workspaces(workspaceList, call),
    },
    {
      name: "profiles",
      group,
      summary: "the servers that you have logged in to",
      commands: [
        {
          name: "list",
          group,
          summary: "list them; the one in use is marked",
          options: [OUTPUT_OPTION],
          examples: ["berth profiles list"],
          run: async (call) => (await import("../actions/profiles.ts")).listProfiles(call),
        },
        {
          name: "use",
          group,
          summary: "use another one from now on",
          args: [{ name: "name", about: "its name; local is the server on this machine" }],
          examples: ["berth profiles use lab", "berth profiles use local"],
          run: async (call) => (await import("../actions/profiles.ts")).useProfile(call),
        },
        {
          name: "remove",
          group,
          summary: "sign out of one and forget it",
          args: [{ name: "name", about: "its name" }],
          examples: ["berth profiles remove lab"],
          run: async (call) => (await import("../actions/profiles.ts")).removeProfile(call),
        },
      ],
    },
    {
      name: "token",
      group,
      summary: "print the API key or token in use",
      options: CONNECTION_OPTIONS,
      examples: ['curl -H "Authorization: Bearer $(berth token)" http://127.0.0.1:8080/v0/drives'],
      run: async (call) => (await import("../actions/session.ts")).token(call),
    },
    {
      name: "passwd",
      group,
      summary: "set your password, or that of somebody in your account who lost theirs",
      details:
        "It is asked for, or read from standard input: the new one on the first line, the current one on the second where it\nis needed. Every session of that person ends. With --link the person chooses: hand them the link that is printed.",
      args: [{ name: "email", about: "somebody else, for account admins", optional: true }],
      options: [
        { flags: "--link", about: "print a link with which that person chooses a password, once" },
        ...CONNECTION_OPTIONS,
      ],
      examples: ["berth passwd", "berth passwd bo@example.com", "berth passwd --link bo@example.com"],
      run: async (call) => (await import("../actions/password.ts")).setPassword(call),
    },
  ];
}
