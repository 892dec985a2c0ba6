export type Language = "yaml" | "json" | "markdown" | "python" | "javascript" | "text";

export interface EditorProps {
  label: string;
  /** The text before any change. */
  text: string;
  language: Language;
  /** JSON Schema of the text, for help while one types; YAML only. */
  schema?: unknown;
  onInput(text: string): void;
}
