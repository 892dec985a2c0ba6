/** Jumps in a long list, and changes that appear in it by themselves. */
import type { Figure } from "./report.ts";
import { p95, untilFrame, type Visit } from "./visit.ts";

const JUMPS = 40;
const CHANGES = 30;
/** Steps of the slider, spread over the list so that no jump lands where another did. */
const STEP = 619;
const STEPS = 1000;

export async function figuresOfLists({ page, platform, open }: Visit, rows: number): Promise<Figure[]> {
  await open("drives");
  await page.getByRole("slider", { name: "Place in the list" }).waitFor();
  const times: number[] = [];
  let rowsMost = 0;
  for (let jump = 1; jump <= JUMPS; jump += 1) {
    const at = (jump * STEP) % STEPS;
    times.push(
      await untilFrame(
        page,
        `const was = document.querySelector("td.name a").href;
         const slider = document.querySelector("input[type=range]");
         slider.value = "${at}";
         slider.dispatchEvent(new Event("input", { bubbles: true }));
         slider.dispatchEvent(new Event("change", { bubbles: true }))`,
        `document.querySelector("td.name a")?.href !== was`,
      ),
    );
    rowsMost = Math.max(rowsMost, await page.evaluate<number>("document.querySelectorAll('tbody tr').length"));
  }
  await open("policies");
  await page.getByRole("heading", { level: 1, name: "Policies" }).waitFor();
  const spec = { type: "maxToken", maxTokens: { granularity: "month", total: 1 } };
  const changes: number[] = [];
  for (let change = 0; change < CHANGES; change += 1) {
    const name = `seen-${change}`;
    const seen = untilFrame(page, "", `document.querySelector("td.name a")?.textContent === "${name}"`);
    await platform.call("POST", "/policies", { workspace: "main", body: { metadata: { name }, spec } });
    const answered = performance.now();
    await seen;
    changes.push(performance.now() - answered);
  }
  return [
    { what: `jump in a list of ${rows}, p95`, value: p95(times), limit: 150 },
    { what: "rows in the document, most", value: rowsMost, unit: "rows", limit: 200 },
    { what: "answered change to pixel, p95", value: p95(changes), limit: 100 },
  ];
}
