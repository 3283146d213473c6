/** Coming back: whose is the session that lies on this computer, and does it go on? */

import { mark } from "./dom.ts";
import { depart, type Place, Session } from "./session.ts";
import type { KeptSession } from "./shelf.ts";
import { Refused } from "./wire.ts";

/** A session to go on with, a choice to leave that has yet to be sent, or nothing: someone new. */
export type Arrival = Session | "keep" | "withdraw" | null;

/**
 * What this computer has of whoever came. A link or Prolific says who that is (`named`), and so does a tab that was
 * here before; anyone else is asked, since a shared computer has many people.
 */
export async function arrive(place: Place, named: boolean, ask: () => Promise<"same" | "new">): Promise<Arrival> {
  const kept = await place.shelf.session(place.who);
  if (!kept) return null;
  const isTheSame = named || place.tab.getItem(here(place.who)) === kept.session;
  if (!isTheSame && (kept.leaving || (await ask()) === "new")) return dismissed(kept, place);
  return kept.leaving ?? Session.resume(kept, place);
}

/** From now on a session is this tab's. */
export function settle({ tab, who }: Place, session: string): void {
  tab.setItem(here(who), session);
}

const here = (who: string) => `here ${who}`;

/** Someone else sits here now: the session of whoever went away ends, with what they answered. */
async function dismissed(kept: KeptSession, place: Place): Promise<null> {
  mark("loading");
  const watch: Place["watch"] = (delivery) => delivery !== "stopped" && place.watch(delivery);
  try {
    await depart(kept, { ...place, watch }, kept.leaving ?? "keep", undefined, { reason: "someone_else" });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    await place.shelf.clear(place.who, kept.session); // it had ended already
  }
  place.watch("sent");
  return null;
}
