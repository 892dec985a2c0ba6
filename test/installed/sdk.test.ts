/**
 * The SDKs as a stranger has them: packed, installed from the file into an empty environment, and used from there
 * against an installation. Both use the same workspace, agent and MCP server.
 */
import assert from "node:assert/strict";
import { before } from "node:test";
import { sdkPlace } from "../sdk/place.ts";
import { pythonSuite } from "../sdk/python-suite.ts";
import { typescriptSuite } from "../sdk/typescript-suite.ts";
import { installation } from "./installation.ts";

const place = sdkPlace(await installation(), "sdk");

before(async () => {
  const made = await place.call("POST", "/workspaces", { body: { name: place.workspace } });
  assert.ok([200, 409].includes(made.status), JSON.stringify(made.body));
});

typescriptSuite(place);
pythonSuite(place);
