/**
 * Numbers for a scraper, in the format that it asks for. The registry writes Prometheus text; OpenMetrics 1.0 differs in
 * three things: a counter's family is called without `_total`, there are no empty lines, and the end is marked.
 */
import { collectDefaultMetrics, type Registry } from "prom-client";

const OPEN_METRICS = "application/openmetrics-text";

export async function scrape(
  registry: Registry,
  accept: string | undefined,
): Promise<{ contentType: string; text: string }> {
  watchProcess(registry);
  const text = await registry.metrics();
  return accept?.includes(OPEN_METRICS)
    ? { contentType: `${OPEN_METRICS}; version=1.0.0; charset=utf-8`, text: toOpenMetrics(text) }
    : { contentType: registry.contentType, text };
}

/** From the first scrape on: watching the event loop wakes the process a hundred times a second. */
function watchProcess(register: Registry): void {
  if (!register.getSingleMetric("process_cpu_seconds_total")) collectDefaultMetrics({ register });
}

export function toOpenMetrics(prometheusText: string): string {
  const lines = prometheusText.split("\n").filter((line) => line !== "");
  const counters = new Set(lines.flatMap((line) => COUNTER.exec(line)?.[1] ?? []));
  const written = lines.map((line) => {
    const [, keyword, name = "", rest = ""] = ABOUT.exec(line) ?? [];
    if (keyword === undefined) return line;
    const family = counters.has(name) ? name.replace(/_total$/, "") : name;
    return `# ${keyword} ${family} ${keyword === "HELP" ? rest.replaceAll('"', '\\"') : rest}`;
  });
  return `${written.join("\n")}\n# EOF\n`;
}

const ABOUT = /^# (HELP|TYPE) (\S+) (.*)$/;
const COUNTER = /^# TYPE (\S+) counter$/;
