/** Kinds and members as headings. */
const PROPER: Readonly<Record<string, string>> = {
  function: "MCP server",
  functions: "MCP servers",
  customdomain: "Domain",
  customdomains: "Domains",
  egressgateway: "Egress gateway",
  egressgateways: "Egress gateways",
  egressip: "Egress address",
  egressips: "Egress addresses",
  integrationconnection: "Connection",
  integrationconnections: "Connections",
  previewtoken: "Preview token",
  previewtokens: "Preview tokens",
  scheduleexecution: "Schedule run",
  scheduleexecutions: "Schedule runs",
  volumesnapshot: "Volume snapshot",
  volumesnapshots: "Volume snapshots",
  volumetemplate: "Volume template",
  volumetemplates: "Volume templates",
  vpc: "Network",
  vpcs: "Networks",
};

/** `MCP servers` stay so within a sentence; other titles begin small there. */
export const withinSentence = (title: string): string =>
  /^[A-Z]{2}/.test(title) ? title : title.charAt(0).toLowerCase() + title.slice(1);

export const titleOf = (word: string): string => PROPER[word] ?? word.charAt(0).toUpperCase() + word.slice(1);

/** Words that people write in their own way. */
const SHORT: Readonly<Record<string, string>> = {
  ...{ api: "API", cpu: "CPU", cpus: "CPUs", dns: "DNS", id: "ID", ip: "IP", ips: "IPs", mcp: "MCP", ttl: "TTL" },
  ...{ uid: "UID", url: "URL", vpc: "Network", gbs: "GB-seconds" },
};

/** `idleTimeout` → `Idle timeout`, `externalId` → `External ID`. */
export const labelOf = (member: string): string => {
  const words = member
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase()
    .replace(/\b[a-z]+\b/g, (word) => SHORT[word] ?? word);
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** Members whose own members have names that people chose: labels, variables, DNS records. */
const NAMED_BY_PEOPLE: readonly string[] = [
  ...["annotations", "labels", "config", "extensions", "extraArgs", "secret"],
  ...["body", "env", "headers", "params", "secrets", "txtRecords"],
];

/** Members of the API are written so; a name in any other shape is data. */
const MEMBER = /^[a-z][a-zA-Z0-9]*$/;

/** The words of a path of members: those of the API as headings, names that are data as they are. */
export const labelsOf = (path: readonly string[]): string[] => {
  const map = path.findIndex((word) => NAMED_BY_PEOPLE.includes(word));
  return path.map((word, at) => ((map !== -1 && at > map) || !MEMBER.test(word) ? word : labelOf(word)));
};

/** With a full stop, and a large letter where it begins with a word; addresses and names of files stay as they are. */
export const sentenceOf = (text: string): string => {
  const begun = text.replace(/^[a-z]+(?=[\s,;]|$)/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
};
