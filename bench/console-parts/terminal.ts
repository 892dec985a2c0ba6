/** A terminal in the page: from the key to the frame that shows what the key did. */
import type { Page } from "playwright-core";
import type { Figure } from "./report.ts";
import { p95, untilFrame, type Visit } from "./visit.ts";

const ECHOES = 40;
const INTERRUPTS = 10;
const ROWS = `document.querySelector(".xterm-rows")`;
const LAST_LINE = `[...${ROWS}.children].findLast((row) => row.textContent.trim() !== "")?.textContent.trimEnd() ?? ""`;
const IS_PROMPT = `/[#$]$/.test(${LAST_LINE})`;

export async function figuresOfTerminal({ page, open }: Visit, sandbox: string): Promise<Figure[]> {
  await open(`sandboxes/${sandbox}?tab=terminal`);
  await page.locator(".xterm-rows").getByText(/[#$]/).first().waitFor();
  await page.getByRole("textbox").focus();
  await page.evaluate(
    `addEventListener("keydown", (event) => { window.keyAt = event.timeStamp; }, { capture: true }); 0`,
  );
  const echoes: number[] = [];
  for (let at = 0; at < ECHOES; at += 1) {
    const length = await page.evaluate<number>(`(${LAST_LINE}).length`);
    echoes.push(await fromKey(page, "abcdefghij"[at % 10] ?? "a", `(${LAST_LINE}).length > ${length}`));
  }
  await fromKey(page, "Control+c", IS_PROMPT);
  const ends: number[] = [];
  for (let at = 0; at < INTERRUPTS; at += 1) {
    await page.keyboard.type("yes");
    await page.keyboard.press("Enter");
    await untilFrame(page, "", `[...${ROWS}.children].every((row) => row.textContent.trim() === "y")`);
    ends.push(await fromKey(page, "Control+c", IS_PROMPT));
  }
  return [
    { what: "terminal: key to echo, p95", value: p95(echoes), limit: 20 },
    { what: "terminal: Ctrl-C during `yes` to prompt, p95", value: p95(ends), limit: 100 },
  ];
}

/**
 * Presses the key. Milliseconds from its event to the end of the frame in which `isDone` holds: the terminal draws within
 * a frame, and a message that is posted there arrives when the frame is painted.
 */
async function fromKey(page: Page, key: string, isDone: string): Promise<number> {
  await page.evaluate(`window.seen = new Promise((resolve) => {
    const watch = new MutationObserver(() => {
      if (!(${isDone})) return;
      watch.disconnect();
      const painted = new MessageChannel();
      painted.port1.onmessage = () => resolve(performance.now() - window.keyAt);
      painted.port2.postMessage(null);
    });
    watch.observe(${ROWS}, { subtree: true, childList: true, characterData: true });
  }); 0`);
  await page.keyboard.press(key);
  return page.evaluate("window.seen");
}
