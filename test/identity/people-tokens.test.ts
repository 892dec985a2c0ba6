/** People's tokens on PostgreSQL; on SQLite an installation is asked (test/installed). */
import { onEachDatabase } from "../each-platform.ts";
import { peopleTokens } from "./people-suite.ts";

await onEachDatabase("people's tokens", peopleTokens, { on: "postgres" });
