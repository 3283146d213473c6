/** Decide whether the session stored on this computer continues, and whose it is. */

import { setStep } from "./dom.ts";
import { retryUntilReply } from "./outbox.ts";
import { clearSession, leaveSession, isUnknownSession, type SessionEnvironment, randomId, Session } from "./session.ts";
import type { StoredSession } from "./storage.ts";
import { RefusedError } from "./wire.ts";

/** A session to continue, a decision to leave that still has to be sent, or null for a new participant. */
export type FoundSession = Session | "keep" | "withdraw" | null;

/** Questions to the participant: whether they were here before, and a notice that their session no longer exists. */
export interface ResumePrompts {
  returning: () => Promise<"same" | "new">;
  lost: () => Promise<unknown>;
}

/**
 * Find the session of this participant on this computer. A link or Prolific ID identifies the participant (`isNamed`),
 * and so does a tab that has shown the session before. Anyone else is asked, because computers may be shared.
 */
export async function findSession(
  environment: SessionEnvironment,
  isNamed: boolean,
  prompts: ResumePrompts,
): Promise<FoundSession> {
  const stored = await loadStoredSession(environment, isNamed);
  if (!stored) return null;
  const isSamePerson = isNamed || environment.tab.getItem(tabKey(environment.storageKey)) === stored.session;
  if (!isSamePerson && (stored.leaving || (await prompts.returning()) === "new")) {
    return endOtherSession(stored, environment);
  }
  if (stored.leaving) return stored.leaving;
  const session = await Session.resume(stored, environment);
  // `Session.begin` resumes the session of a named participant; without a name it cannot be found again.
  if (!session && !isNamed && (await hasUndelivered(stored, environment))) await prompts.lost();
  return session;
}

/** Mark a session as belonging to this tab. */
export function claimTab({ tab, storageKey }: SessionEnvironment, session: string): void {
  tab.setItem(tabKey(storageKey), session);
}

const tabKey = (storageKey: string) => `here ${storageKey}`;

/**
 * Load the stored session; try twice, because the disk may be slow. If that fails, named participants are known to the
 * server, and a new tab starts a new session. In a tab that has shown the session, reject, so that the participant
 * reloads the page and does not lose it.
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

/** Replace the stored entry ID, so that the server does not take a new participant for the previous one. */
const resetEntry = ({ storage, storageKey }: SessionEnvironment): Promise<void> =>
  storage.storeEntry(storageKey, randomId()).catch(() => {});

/** Return whether the session still has records here that could not be delivered. */
async function hasUndelivered({ session }: StoredSession, { storage, storageKey }: SessionEnvironment): Promise<boolean> {
  return (await storage.loadSession(storageKey).catch(() => undefined))?.session === session;
}

const OVER_REASONS = new Set(["ended", "already"]);

/** End the session of a previous participant, keeping their answers, because someone else begins now. */
async function endOtherSession(stored: StoredSession, environment: SessionEnvironment): Promise<null> {
  setStep("loading");
  const onDelivery: SessionEnvironment["onDelivery"] = (delivery) =>
    delivery !== "stopped" && environment.onDelivery(delivery);
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

/**
 * Keep a session whose records the server refused. It is stored below the new participant's session and tried again
 * later.
 */
async function storeUndelivered(
  stored: StoredSession,
  environment: SessionEnvironment,
  refusal: RefusedError,
): Promise<void> {
  if (!isUnknownSession(refusal)) {
    await retryUntilReply(() => environment.server.leave(stored.token, "keep")).catch(() => {});
  }
  await environment.storage.storeSession(environment.storageKey, stored).catch(() => {});
  await resetEntry(environment);
}
