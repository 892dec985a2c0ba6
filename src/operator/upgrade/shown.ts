/** `berth version`: which version runs this command, which one serves, and how the last upgrade went. */
import { runningNotes } from "../../lib/process-note.ts";
import { ROOT } from "../../lib/root.ts";
import { packageVersion } from "../version.ts";
import { readUpgrade, STATES } from "./record.ts";
import { installation } from "./versions.ts";

export function versionLines(dataDir: string): string[] {
  const { base } = installation();
  const machine = `node ${process.version}, ${process.platform}-${process.arch}`;
  const place = base === ROOT ? ROOT : `${ROOT}, current in ${base}`;
  const servers = runningNotes(dataDir).map(
    ({ url, pid, version = "older", root = "" }) =>
      `server ${version} at ${url} (pid ${pid}${root && `, from ${root}`})`,
  );
  const last = readUpgrade(dataDir);
  const upgraded = last && `last upgrade, to ${last.to.version} at ${last.askedAt}: ${STATES[last.state]}`;
  return [
    `berth ${packageVersion()} (${machine})`,
    `installed in ${place}`,
    ...(servers.length > 0 ? servers : [`no server of ${dataDir} is running`]),
    ...(upgraded ? [last.reason ? `${upgraded} (${last.reason})` : upgraded] : []),
  ];
}
