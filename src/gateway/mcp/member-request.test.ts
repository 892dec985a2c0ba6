import assert from "node:assert/strict";
import { test } from "node:test";
import type { Downstream } from "../../http/downstream.ts";
import type { ServeContext } from "../call.ts";
import { credentialNames } from "../credentials.ts";
import { askMember } from "./member-request.ts";

test("nothing that a client or a server says begins a header line of its own", () => {
  const requests: unknown[] = [];
  const context = { names: credentialNames("berth"), within: async (down: unknown) => void requests.push(down) };
  const ask = (url: string, version: string): void => {
    const down = { url, header: () => undefined, upgrade: "websocket", remoteAddress: "203.0.113.9" };
    const member = { context: context as unknown as ServeContext, down: down as unknown as Downstream };
    const asked = { method: "GET", headers: { "MCP-Protocol-Version": version }, body: "" } as const;
    void askMember({ ...member, workspace: "ws", name: "f", origin: "virtual-server" }, asked, AbortSignal.timeout(1));
  };
  assert.throws(() => ask("/mcp", "1\r\nX-Evil: 1"), /header/);
  assert.throws(() => ask("/mcp?token=a%0d%0aX-Evil:1", "1"), /header/);
  assert.deepEqual(requests, []);
});
