/** A component that is loaded when it is first shown, or before. */
import type { ComponentType, JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { Failure, Loading } from "./notice.tsx";

export interface LazyComponent<Props extends object> {
  (props: Props): JSX.Element;
  /** Loads the component before it is shown. */
  preload(): Promise<void>;
}

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): LazyComponent<Props> {
  let loaded: ComponentType<Props> | null = null;
  const preload = async (): Promise<void> => {
    loaded ??= await load();
  };
  function Lazy(props: Props): JSX.Element {
    const [, show] = useState(0);
    const [error, setError] = useState<Error | null>(null);
    useLayoutEffect(() => {
      if (loaded !== null) return;
      preload().then(
        () => show((count) => count + 1),
        () => setError(new Error("A part of the console could not be loaded. Load the page again.")),
      );
    }, []);
    if (error) return <Failure error={error} />;
    const Shown = loaded;
    return Shown === null ? <Loading /> : <Shown {...props} />;
  }
  return Object.assign(Lazy, { preload });
}
