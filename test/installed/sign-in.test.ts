/** `berth login`, `passwd` and `logout` of an installation, against its own server. */
import { describe } from "node:test";
import { cliSignIn } from "../identity/cli-suite.ts";
import { installation } from "./installation.ts";
import { apiOf } from "./suite.ts";

const installed = await installation();
describe("signing in from a terminal of an installation", () =>
  cliSignIn({ ...apiOf(installed), apiKey: () => installed.apiKey, root: installed.root }));
