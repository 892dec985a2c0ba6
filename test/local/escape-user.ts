/** The attempts to get out as a user without rights; run by escape.test.ts, which has them. */
import { escapes } from "./escape-table.ts";

escapes("user");
