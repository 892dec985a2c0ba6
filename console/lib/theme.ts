/** Light, dark, or as the system says. The sheet reads `data-theme` of the root. */
import { remembered } from "./storage.ts";

export const THEMES = ["system", "light", "dark"];

export const theme = remembered("theme", "system");

export function applyTheme(): void {
  theme.subscribe((value) => {
    const root = document.documentElement;
    if (value === "system") delete root.dataset.theme;
    else root.dataset.theme = value;
  });
}

export function nextTheme(): void {
  const at = THEMES.indexOf(theme.value);
  theme.value = THEMES[(at + 1) % THEMES.length] ?? "system";
}
