/** Coming back: whose is the session that lies on this computer, and does it go on? */

import { setStep } from "./dom.ts";
import { retryUntilReply } from "./outbox.ts";
import { clearSession, leaveSession, isUnknownSession, type SessionEnvironment, randomId, Session } from "./session.ts";
import type { StoredSession } from "./storage.ts";
import { RefusedError } from "./wire.ts";

/** A session to go on with, a choice to leave that has yet to be sent, or nothing: someone new. */
export type FoundSession = Session | "keep" | "withdraw" | null;

/** What only the person can say: whether they were here before, and that they begin anew since their session is gone. */
export interface ResumePrompts {
  returning: () => Promise<"same" | "new">;
  lost: () => Promise<unknown>;
}

/**
 * What this computer has of whoever came. A link or Prolific says who that is (`isNamed`), and so does a tab that was
 * here before; anyone else is asked, since a shared computer has many people.
 */
export async function findSession(environment: SessionEnvironment, isNamed: boolean, prompts: ResumePrompts): Promise<FoundSession> {
  const stored = await loadStoredSession(environment, isNamed);
  if (!stored) return null;
  const isSamePerson = isNamed || environment.tab.getItem(tabKey(environment.storageKey)) === stored.session;
  if (!isSamePerson && (stored.leaving || (await prompts.returning()) === "new")) return endOtherSession(stored, environment);
  if (stored.leaving) return stored.leaving;
  const session = await Session.resume(stored, environment);
  // By name, `begin` takes up the session where it is now; without one, nothing leads back to it.
  if (!session && !isNamed && (await hasUndelivered(stored, environment))) await prompts.lost();
  return session;
}

/** From now on a session is this tab's. */
export function claimTab({ tab, storageKey }: SessionEnvironment, session: string): void {
  tab.setItem(tabKey(storageKey), session);
}

const tabKey = (storageKey: string) => `here ${storageKey}`;

/**
 * The session on this computer's disk, which may be slow and is asked twice. Without an answer the server knows those
 * with a name, and whoever was not here in this tab begins anew. Who was would lose their place, so they are told to
 * load the page again.
 */
async function loadStoredSession(environment: SessionEnvironment, isNamed: boolean): Promise<StoredSession | undefined> {
  const { storage, tab, storageKey } = environment;
  try {
    return await storage.loadSession(storageKey).catch(() => storage.loadSession(storageKey));
  } catch (error) {
    if (!isNamed && tab.getItem(tabKey(storageKey))) throw error;
    if (!isNamed) void resetEntry(environment);
    return undefined;
  }
}

/** Whoever begins now is not taken for the person before, by the name under which that one had asked to begin. */
const resetEntry = ({ storage, storageKey }: SessionEnvironment): Promise<void> => storage.storeEntry(storageKey, randomId()).catch(() => {});

/** Whether something of a session is still here: what could not be delivered. */
async function hasUndelivered({ session }: StoredSession, { storage, storageKey }: SessionEnvironment): Promise<boolean> {
  return (await storage.loadSession(storageKey).catch(() => undefined))?.session === session;
}

const OVER_REASONS = new Set(["ended", "already"]);

/** Someone else sits here now: the session of whoever went away ends, with what they answered. */
async function endOtherSession(stored: StoredSession, environment: SessionEnvironment): Promise<null> {
  setStep("loading");
  const onDelivery: SessionEnvironment["onDelivery"] = (delivery) => delivery !== "stopped" && environment.onDelivery(delivery);
  const leaving = stored.leaving ?? "keep";
  try {
    await leaveSession(stored, { ...environment, onDelivery }, leaving, undefined, { reason: "someone_else" });
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    if (OVER_REASONS.has(error.reason) || leaving === "withdraw") await clearSession(stored, environment);
    else await storeUndelivered({ ...stored, leaving }, environment, error);
  }
  environment.onDelivery("sent");
  return null;
}

/** What the server would not take stays, below the session of whoever is here now, and is tried again after it. */
async function storeUndelivered(stored: StoredSession, environment: SessionEnvironment, refusal: RefusedError): Promise<void> {
  if (!isUnknownSession(refusal)) await retryUntilReply(() => environment.server.leave(stored.token, "keep")).catch(() => {});
  await environment.storage.storeSession(environment.storageKey, stored).catch(() => {});
  await resetEntry(environment);
}
