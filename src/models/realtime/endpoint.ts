/** The paths of the realtime API, however a caller writes them; none has a query. */
import { isAt } from "../plain-path.ts";

export const isRealtime = (path: string): boolean => isAt(path, /(?:^|\/)realtime$/);

export const isBelowRealtime = (path: string): boolean => isAt(path, /(?:^|\/)realtime\/+[^/]/);
