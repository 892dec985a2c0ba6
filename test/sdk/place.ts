/** Where the suites of the SDKs run: a folder, a workspace of an installation, and what is deployed there. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { commandOf, folderOf } from "../installed/command.ts";
import { type Installation, strangersEnv } from "../installed/installation.ts";
import { apiOf } from "../installed/suite.ts";

export const CHECKOUT = join(import.meta.dirname, "../..");

export interface SdkPlace {
  installed: Installation;
  workspace: string;
  /** A new folder. */
  folder(name: string): string;
  /** The variables of a stranger who has used the command line before: its file has the credentials. */
  env: Record<string, string>;
  call: ReturnType<typeof apiOf>["call"];
  make: ReturnType<typeof apiOf>["make"];
  deploy(folder: string): Promise<void>;
}

export function sdkPlace(installed: Installation, workspace: string): SdkPlace {
  return {
    ...apiOf(installed, workspace),
    installed,
    workspace,
    env: strangersEnv({ home: installed.home, BERTH_WORKSPACE: workspace }),
    folder(name) {
      const folder = folderOf(installed, name);
      mkdirSync(folder, { recursive: true });
      return folder;
    },
    async deploy(folder) {
      const ended = await commandOf(installed)(["deploy", folder], { workspace });
      assert.equal(ended.code, 0, `berth deploy ${folder}: ${ended.stdout}${ended.stderr}`);
    },
  };
}

/** What a failed program has printed is the message. */
export const printed = (error: { stdout?: string; stderr?: string }): never =>
  assert.fail(`${error.stdout ?? ""}${error.stderr ?? ""}` || String(error));

export const kilobytes = (bytes: number): string => `${(bytes / 1024).toFixed(1)} kB`;
