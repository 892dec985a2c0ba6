/** Whether an open invitation may still be accepted: its maker may invite, and the right that made it has not ended. */
import type { Invitation } from "../../store/people/people.ts";
import { ENDED, type EndsDeps, endOf } from "./ends.ts";

export const invitationStands = async (invitation: Invitation, deps: EndsDeps): Promise<boolean> =>
  (await deps.store.people.invitationStands(invitation)) && (await endOf(invitation.made_with, deps)) !== ENDED;
