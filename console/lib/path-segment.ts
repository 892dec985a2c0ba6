/**
 * One segment of a path from a text that somebody else chose. Browsers resolve `.` and `..` before they send a request,
 * also when they are escaped: deleting the thread `..` of an agent would delete the agent.
 */
export function pathSegment(text: string): string {
  if (text === "" || text === "." || text === "..") throw new Error(`The id '${text}' cannot stand in an address.`);
  return encodeURIComponent(text);
}
