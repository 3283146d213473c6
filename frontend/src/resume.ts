/** Coming back: whose is the session that lies on this computer, and does it go on? */

import { mark } from "./dom.ts";
import { retryUntilAnswered } from "./outbox.ts";
import { clearSession, leaveSession, isUnknownSession, type Place, random, Session } from "./session.ts";
import type { StoredSession } from "./storage.ts";
import { Refused } from "./wire.ts";

/** A session to go on with, a choice to leave that has yet to be sent, or nothing: someone new. */
export type Arrival = Session | "keep" | "withdraw" | null;

/** What only the person can say: whether they were here before, and that they begin anew since their session is gone. */
export interface Asking {
  returning: () => Promise<"same" | "new">;
  gone: () => Promise<unknown>;
}

/**
 * What this computer has of whoever came. A link or Prolific says who that is (`named`), and so does a tab that was
 * here before; anyone else is asked, since a shared computer has many people.
 */
export async function findSession(place: Place, named: boolean, ask: Asking): Promise<Arrival> {
  const kept = await loadStoredSession(place, named);
  if (!kept) return null;
  const isTheSame = named || place.tab.getItem(here(place.who)) === kept.session;
  if (!isTheSame && (kept.leaving || (await ask.returning()) === "new")) return endOtherSession(kept, place);
  if (kept.leaving) return kept.leaving;
  const session = await Session.resume(kept, place);
  // By name, `begin` takes up the session where it is now; without one, nothing leads back to it.
  if (!session && !named && (await hasUndelivered(kept, place))) await ask.gone();
  return session;
}

/** From now on a session is this tab's. */
export function claimTab({ tab, who }: Place, session: string): void {
  tab.setItem(here(who), session);
}

const here = (who: string) => `here ${who}`;

/**
 * The session on this computer's disk, which may be slow and is asked twice. Without an answer the server knows those
 * with a name, and whoever was not here in this tab begins anew. Who was would lose their place, so they are told to
 * load the page again.
 */
async function loadStoredSession(place: Place, named: boolean): Promise<StoredSession | undefined> {
  const { storage, tab, who } = place;
  try {
    return await storage.session(who).catch(() => storage.session(who));
  } catch (error) {
    if (!named && tab.getItem(here(who))) throw error;
    if (!named) void resetEntry(place);
    return undefined;
  }
}

/** Whoever begins now is not taken for the person before, by the name under which that one had asked to begin. */
const resetEntry = ({ storage, who }: Place): Promise<void> => storage.storeEntry(who, random()).catch(() => {});

/** Whether something of a session is still here: what could not be delivered. */
async function hasUndelivered({ session }: StoredSession, { storage, who }: Place): Promise<boolean> {
  return (await storage.session(who).catch(() => undefined))?.session === session;
}

const OVER = new Set(["ended", "already"]);

/** Someone else sits here now: the session of whoever went away ends, with what they answered. */
async function endOtherSession(kept: StoredSession, place: Place): Promise<null> {
  mark("loading");
  const watch: Place["watch"] = (delivery) => delivery !== "stopped" && place.watch(delivery);
  const leaving = kept.leaving ?? "keep";
  try {
    await leaveSession(kept, { ...place, watch }, leaving, undefined, { reason: "someone_else" });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (OVER.has(error.reason) || leaving === "withdraw") await clearSession(kept, place);
    else await storeUndelivered({ ...kept, leaving }, place, error);
  }
  place.watch("sent");
  return null;
}

/** What the server would not take stays, below the session of whoever is here now, and is tried again after it. */
async function storeUndelivered(kept: StoredSession, place: Place, refusal: Refused): Promise<void> {
  if (!isUnknownSession(refusal)) await retryUntilAnswered(() => place.server.leave(kept.token, "keep")).catch(() => {});
  await place.storage.storeSession(place.who, kept).catch(() => {});
  await resetEntry(place);
}
