/** Suites that ask any running platform, asking an installation. */
import { describe } from "node:test";
import { type ApiSuite, maker } from "../each-platform.ts";
import { caller } from "../platform.ts";
import { type Installation, installation } from "./installation.ts";

/** Calls of the admin, who names no workspace unless the suite does. */
export function apiOf({ url, apiKey }: Installation, workspace?: string): ApiSuite {
  const ask = caller(url);
  const call: ApiSuite["call"] = (method, path, options = {}) =>
    ask(method, path, { key: apiKey, ...(workspace === undefined ? {} : { workspace }), ...options });
  return { call, make: maker(call), url: () => url };
}

export async function onInstallation(title: string, suite: (given: ApiSuite) => void): Promise<void> {
  const given = apiOf(await installation());
  describe(`${title} in an installation`, () => suite(given));
}
