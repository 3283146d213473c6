/**
 * Where a visit takes place: whom it talks to, and what it may leave behind. A participant's is real; a researcher who
 * looks at the study as a participant would has a rehearsal (`?preview=1`), of which nothing stays anywhere.
 */

import { el } from "./dom.ts";
import { retryUntilReply } from "./outbox.ts";
import { memoryStorage, openStorage, type BrowserStorage } from "./storage.ts";
import { waitForOnlyTab } from "./tabs.ts";
import { type StartedSession, fetchPreview, RefusedError, type Server, sessionServer } from "./wire.ts";

export interface Environment {
  /** Whether a researcher looks at the study as a participant would; nothing is then stored. */
  preview: boolean;
  server: Server;
  storage: BrowserStorage;
  /** What this tab remembers over a reload. */
  tab: Pick<Storage, "getItem" | "setItem">;
  /** Resolves when the visit may begin; `busy` is called if it has to wait for another tab. */
  enter: (storageKey: string, onBusy: () => void) => Promise<void>;
}

/** The ground that the address of the page asks for. */
export function createEnvironment(search: string, study: string): Promise<Environment> {
  return new URLSearchParams(search).get("preview") === "1" ? Promise.resolve(createPreviewEnvironment(study)) : createParticipantEnvironment();
}

async function createParticipantEnvironment(): Promise<Environment> {
  return { preview: false, server: sessionServer, storage: await openStorage(), tab: tabMemory, enter: waitForOnlyTab };
}

/** The server gives trials and hears of nothing else; two tabs can't come into each other's way. */
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

/** A browser that keeps no data of this site throws at the very name of it: then a reload asks who it is. */
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
    } catch {} // or it is full
  },
};

export const emptyTabMemory: Environment["tab"] = { getItem: () => null, setItem: () => {} };

/** Says on every screen that nothing is stored; page.css takes it away while something is shown. */
export function createPreviewBanner(text: string): HTMLElement {
  return el("p", { id: "preview-banner", role: "note" }, text);
}
