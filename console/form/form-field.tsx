/** One field of a form, by its type. An empty field means that the member is left out. */
import { labelOf } from "../lib/titles.ts";
import { Choice, Field } from "../ui/field.tsx";
import type { FormField } from "./schema.ts";

export interface FormFieldProps {
  field: FormField;
  value: unknown;
  onInput(value: unknown): void;
  wrong: string | null;
}

export function FormInput({ field, value, onInput, wrong }: FormFieldProps) {
  const { path, type, choices, hint, isRequired } = field;
  const label = titleOf(path);
  if (type === "choice" || type === "flag")
    return (
      <Choice
        label={label}
        value={value === undefined ? "" : String(value)}
        choices={type === "flag" ? ["true", "false"] : choices}
        hint={hint}
        none="Default"
        onInput={(text) => onInput(text === "" ? undefined : type === "flag" ? text === "true" : text)}
      />
    );
  const text = Array.isArray(value) ? value.join("\n") : value === undefined ? "" : String(value);
  return (
    <Field
      label={label}
      value={text}
      hint={type === "lines" ? `${hint === undefined ? "" : `${hint} `}One on each line.` : hint}
      lines={type === "lines" ? 3 : 1}
      type={type === "number" ? "number" : "text"}
      wrong={wrong}
      isRequired={isRequired}
      onInput={(next) => onInput(typedValue(type, next))}
    />
  );
}

function typedValue(type: FormField["type"], text: string): unknown {
  if (text === "") return undefined;
  if (type === "number") return Number(text);
  return type === "lines" ? text.split("\n") : text;
}

/** `spec.runtime.memory` → `Memory`; deeper members keep the word before them. */
const titleOf = (path: string): string => {
  const words = path.split(".").filter((word) => !["metadata", "spec", "runtime"].includes(word));
  return (words.length === 0 ? [path] : words).map(labelOf).join(" · ");
};
