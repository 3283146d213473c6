/** What is kept on this computer: sessions by who came to which study, and every record until the study is over. */

import type { NumberedRecord } from "./wire.ts";

/** A session as this browser knows it. */
export interface StoredSession {
  session: string;
  token: string;
  /** Set once the participant chose to leave, until the server knows. */
  leaving?: "keep" | "withdraw";
  /** Whose place this took here: a session with records that the server would not take. */
  before?: StoredSession;
}

/** `refused`: what the server would not take, in whose place this record stands. */
export type StoredRecord = NumberedRecord & { session: string; sent?: true; refused?: NumberedRecord };

export interface BrowserStorage {
  /** The random name under which someone asked to begin. */
  entry(who: string): Promise<string | undefined>;
  storeEntry(who: string, entry: string): Promise<void>;
  session(who: string): Promise<StoredSession | undefined>;
  storeSession(who: string, session: StoredSession): Promise<void>;
  records(session: string): Promise<StoredRecord[]>;
  storeRecords(records: StoredRecord[]): Promise<void>;
  /** Nothing of this session stays. */
  clear(who: string, session: string): Promise<void>;
}

/** How long anyone waits for this computer's disk: to be there at all, then for each thing read or written. */
export const OPEN_MS = 10_000;
const DISK_MS = 3_000;

/** The browser's database; where it has none (some private windows) or it never opens, memory, which a reload empties. */
export async function openStorage(): Promise<BrowserStorage> {
  try {
    return indexedDbStorage(await withTimeout(opened(), OPEN_MS));
  } catch {
    return memoryStorage();
  }
}

/** The same promise, which rejects where nothing has come of it after so long. */
export async function withTimeout<Value>(promise: Promise<Value>, most_ms: number): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("The disk of this computer does not answer.")), most_ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function opened(): Promise<IDBDatabase> {
  const request = indexedDB.open("vseg", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("entries");
    request.result.createObjectStore("sessions");
    request.result.createObjectStore("records", { keyPath: ["session", "seq"] });
  };
  return result(request);
}

/** Every read and write rejects, and throws nothing, where the disk is full, gone, or does not answer for `disk_ms`. */
export function indexedDbStorage(database: Pick<IDBDatabase, "transaction">, disk_ms = DISK_MS): BrowserStorage {
  /** Resolves when what was written is on the disk. */
  const write = (name: string, change: (store: IDBObjectStore) => void) => {
    const written = new Promise<void>((resolve, reject) => {
      const transaction = database.transaction(name, "readwrite", { durability: "strict" });
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      change(transaction.objectStore(name));
    });
    return withTimeout(written, disk_ms);
  };
  const read = async <Value>(name: string, ask: (store: IDBObjectStore) => IDBRequest<Value>): Promise<Value> =>
    withTimeout(result(ask(database.transaction(name).objectStore(name))), disk_ms);
  const all = (session: string) => IDBKeyRange.bound([session, 0], [session, Infinity]);

  return {
    entry: (who) => read("entries", (store) => store.get(who)),
    storeEntry: (who, entry) => write("entries", (store) => store.put(entry, who)),
    session: (who) => read("sessions", (store) => store.get(who)),
    storeSession: (who, session) => write("sessions", (store) => store.put(session, who)),
    records: (session) => read("records", (store) => store.getAll(all(session))),
    storeRecords: (records) => write("records", (store) => records.forEach((record) => store.put(record))),
    async clear(who, session) {
      await write("entries", (store) => store.delete(who));
      await write("sessions", (store) => store.delete(who));
      await write("records", (store) => store.delete(all(session)));
    },
  };
}

function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** The same, for as long as the page lives. */
export function memoryStorage(): BrowserStorage {
  const entries = new Map<string, string>();
  const sessions = new Map<string, StoredSession>();
  const records = new Map<string, Map<number, StoredRecord>>();
  return {
    entry: async (who) => entries.get(who),
    storeEntry: async (who, entry) => void entries.set(who, entry),
    session: async (who) => sessions.get(who),
    storeSession: async (who, session) => void sessions.set(who, session),
    records: async (session) => [...(records.get(session)?.values() ?? [])],
    async storeRecords(kept) {
      for (const record of kept) {
        const own = records.get(record.session) ?? new Map<number, StoredRecord>();
        records.set(record.session, own.set(record.seq, record));
      }
    },
    async clear(who, session) {
      entries.delete(who);
      sessions.delete(who);
      records.delete(session);
    },
  };
}
