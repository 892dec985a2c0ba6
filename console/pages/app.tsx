/**
 * Which page is shown: the sign-in without a session, the first workspace without an address. Somebody who was here
 * before sees the page while the session is looked up; its requests wait for the token.
 */
import { useEffect } from "preact/hooks";
import { isByLink, sessionState } from "../api/session.ts";
import { useWorkspaces } from "../api/workspaces.ts";
import { go } from "../lib/location.ts";
import { Failure, Loading } from "../ui/notice.tsx";
import { Toasts } from "../ui/toast.tsx";
import { placeHere, places } from "../views/places.ts";
import { lastWorkspace } from "./last-workspace.ts";
import { Shell } from "./shell/shell.tsx";
import { OtherLink, SignIn } from "./sign-in.tsx";

const isKnown = !isByLink && lastWorkspace.value !== "";

export function App() {
  const state = sessionState.value === "unknown" && isKnown ? "open" : sessionState.value;
  return (
    <>
      {state === "unknown" ? (
        <Loading />
      ) : state === "open" ? (
        <Inside />
      ) : state === "linkOfAnother" ? (
        <OtherLink />
      ) : (
        <SignIn isLinkGone={state === "linkGone"} />
      )}
      <Toasts />
    </>
  );
}

function Inside() {
  const place = placeHere();
  return place.page === "start" ? <FirstPlace /> : <Shell place={place} />;
}

function FirstPlace() {
  const { data, error } = useWorkspaces();
  const names = data?.map(({ name }) => name) ?? [];
  const first = names.includes(lastWorkspace.value) ? lastWorkspace.value : names[0];
  useEffect(() => {
    if (first !== undefined) go(places.home(first), "replace");
  }, [first]);
  return error ? <Failure error={error} /> : <Loading />;
}
