/** A component that is loaded when it is first shown. */
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Failure, Loading } from "./notice.tsx";

export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>) {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props): JSX.Element {
    const [, show] = useState(0);
    const [error, setError] = useState<Error | null>(null);
    useEffect(() => {
      if (loaded !== null) return;
      load().then(
        (component) => {
          loaded = component;
          show((count) => count + 1);
        },
        () => setError(new Error("A part of the console could not be loaded. Load the page again.")),
      );
    }, []);
    if (error) return <Failure error={error} />;
    const Shown = loaded;
    return Shown === null ? <Loading /> : <Shown {...props} />;
  };
}
