/** YAML as people read and write resources; the library is loaded when the first text is shown. */
export async function toYaml(value: unknown): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify(value, { lineWidth: 0 });
}

/** The value of a text in YAML or JSON. Throws with the line of a mistake. */
export async function fromYaml(text: string): Promise<unknown> {
  const { parse } = await import("yaml");
  return parse(text) as unknown;
}
