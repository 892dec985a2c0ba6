export type Language = "yaml" | "json" | "markdown" | "python" | "javascript" | "text";

export interface EditorProps {
  label: string;
  /** The text before any change. */
  text: string;
  language: Language;
  onInput(text: string): void;
}
