import type { ListQuery } from "../../api/resources.ts";
import { queryOf } from "../../lib/location.ts";

/** Filters and order of a list, from the address. */
export const listQuery = (): ListQuery => ({ q: queryOf("q"), status: queryOf("status"), sort: queryOf("sort") });
