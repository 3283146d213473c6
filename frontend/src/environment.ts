/**
 * The environment of a visit: the server, and the storage in the browser. A participant's visit uses the real ones. In
 * a preview (`?preview=1`), a researcher goes through the study as a participant would, and nothing is stored anywhere.
 */

import { el } from "./dom.ts";
import { retryUntilReply } from "./outbox.ts";
import { memoryStorage, openStorage, type BrowserStorage } from "./storage.ts";
import { waitForOnlyTab } from "./tabs.ts";
import { type StartedSession, fetchPreview, RefusedError, type Server, sessionServer } from "./wire.ts";

export interface Environment {
  /** Whether this is a researcher's preview; nothing is stored then. */
  preview: boolean;
  server: Server;
  storage: BrowserStorage;
  /** Storage of this tab that survives a reload. */
  tab: Pick<Storage, "getItem" | "setItem">;
  /** Resolve when the visit may begin; call `onBusy` if it has to wait for another tab. */
  enter: (storageKey: string, onBusy: () => void) => Promise<void>;
}

/** Create the environment that the address of the page asks for. */
export function createEnvironment(search: string, study: string): Promise<Environment> {
  const isPreview = new URLSearchParams(search).get("preview") === "1";
  return isPreview ? Promise.resolve(createPreviewEnvironment(study)) : createParticipantEnvironment();
}

async function createParticipantEnvironment(): Promise<Environment> {
  return { preview: false, server: sessionServer, storage: await openStorage(), tab: tabMemory, enter: waitForOnlyTab };
}

/** Create a preview: the server only provides trials, and several tabs may be open at once. */
export function createPreviewEnvironment(study: string): Environment {
  let session: StartedSession | null = null;
  const state = async () => session!;
  return {
    preview: true,
    storage: memoryStorage(),
    tab: emptyTabMemory,
    server: {
      begin: state,
      state,
      complete: async () => ({ completion_code: null, return_url: null }),
      leave: async () => ({}),
      records: async (_token, records) => ({ stored: records.map(({ seq }) => seq) }),
    },
    enter: async () => {
      session = await retryUntilReply(() => fetchPreview(study)).catch((error: unknown) => {
        if (error instanceof RefusedError && error.status === 401) throw new RefusedError(401, { reason: "log_in" });
        throw error;
      });
    },
  };
}

/**
 * Session storage that never throws. If the browser blocks it, nothing is stored, and after a reload the page asks who
 * the participant is.
 */
export const tabMemory: Environment["tab"] = {
  getItem(key) {
    try {
      return sessionStorage.getItem(key);
    } catch {
      return null;
    }
  },
  setItem(key, value) {
    try {
      sessionStorage.setItem(key, value);
    } catch {} // storage may be full
  },
};

export const emptyTabMemory: Environment["tab"] = { getItem: () => null, setItem: () => {} };

/** Create the note on every screen that nothing is stored; page.css hides it while a stimulus is shown. */
export function createPreviewBanner(text: string): HTMLElement {
  return el("p", { id: "preview-banner", role: "note" }, text);
}
