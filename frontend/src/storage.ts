/** Storage in this browser: sessions by study and participant, and every record until the session is over. */

import type { NumberedRecord } from "./wire.ts";

/** A session as stored in this browser. */
export interface StoredSession {
  session: string;
  token: string;
  /** Set when the participant decides to leave, until the server has confirmed it. */
  leaving?: "keep" | "withdraw";
  /** The session stored before this one, with records that the server refused. */
  before?: StoredSession;
}

/** A record as stored in this browser. `refused`: the record that this one replaces, because the server refused it. */
export type StoredRecord = NumberedRecord & { session: string; sent?: true; refused?: NumberedRecord };

export interface BrowserStorage {
  /** Load the random ID under which the participant asked to begin. */
  loadEntry(storageKey: string): Promise<string | undefined>;
  storeEntry(storageKey: string, entry: string): Promise<void>;
  loadSession(storageKey: string): Promise<StoredSession | undefined>;
  storeSession(storageKey: string, session: StoredSession): Promise<void>;
  loadRecords(session: string): Promise<StoredRecord[]>;
  storeRecords(records: StoredRecord[]): Promise<void>;
  /** Remove everything about this session. */
  clear(storageKey: string, session: string): Promise<void>;
}

/** Time limits for opening the database, and for each read and write. */
export const OPEN_MS = 10_000;
const DISK_MS = 3_000;

/**
 * Open the browser's database. Return storage in memory, which a reload empties, if there is none (as in some private
 * windows) or it does not open.
 */
export async function openStorage(): Promise<BrowserStorage> {
  try {
    return indexedDbStorage(await withTimeout(openDatabase(), OPEN_MS));
  } catch {
    return memoryStorage();
  }
}

/** Return the promise, which rejects if it is still pending after `timeout_ms`. */
export async function withTimeout<Value>(promise: Promise<Value>, timeout_ms: number): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("The disk of this computer does not answer.")), timeout_ms);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

async function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open("vseg", 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("entries");
    request.result.createObjectStore("sessions");
    request.result.createObjectStore("records", { keyPath: ["session", "seq"] });
  };
  return awaitRequest(request);
}

/**
 * Return storage in IndexedDB. Reads and writes reject, and never throw, if the disk fails or does not respond within
 * `disk_ms`.
 */
export function indexedDbStorage(database: Pick<IDBDatabase, "transaction">, disk_ms = DISK_MS): BrowserStorage {
  /** Resolve when the change is on the disk. */
  const write = (name: string, change: (store: IDBObjectStore) => void) => {
    const completed = new Promise<void>((resolve, reject) => {
      const transaction = database.transaction(name, "readwrite", { durability: "strict" });
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
      change(transaction.objectStore(name));
    });
    return withTimeout(completed, disk_ms);
  };
  const read = async <Value>(name: string, createRequest: (store: IDBObjectStore) => IDBRequest<Value>): Promise<Value> =>
    withTimeout(awaitRequest(createRequest(database.transaction(name).objectStore(name))), disk_ms);
  const recordRange = (session: string) => IDBKeyRange.bound([session, 0], [session, Infinity]);

  return {
    loadEntry: (storageKey) => read("entries", (store) => store.get(storageKey)),
    storeEntry: (storageKey, entry) => write("entries", (store) => store.put(entry, storageKey)),
    loadSession: (storageKey) => read("sessions", (store) => store.get(storageKey)),
    storeSession: (storageKey, session) => write("sessions", (store) => store.put(session, storageKey)),
    loadRecords: (session) => read("records", (store) => store.getAll(recordRange(session))),
    storeRecords: (records) => write("records", (store) => records.forEach((record) => store.put(record))),
    async clear(storageKey, session) {
      await write("entries", (store) => store.delete(storageKey));
      await write("sessions", (store) => store.delete(storageKey));
      await write("records", (store) => store.delete(recordRange(session)));
    },
  };
}

function awaitRequest<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Return storage in memory, which lasts until the page is reloaded. */
export function memoryStorage(): BrowserStorage {
  const entries = new Map<string, string>();
  const sessions = new Map<string, StoredSession>();
  const records = new Map<string, Map<number, StoredRecord>>();
  return {
    loadEntry: async (storageKey) => entries.get(storageKey),
    storeEntry: async (storageKey, entry) => void entries.set(storageKey, entry),
    loadSession: async (storageKey) => sessions.get(storageKey),
    storeSession: async (storageKey, session) => void sessions.set(storageKey, session),
    loadRecords: async (session) => [...(records.get(session)?.values() ?? [])],
    async storeRecords(added) {
      for (const record of added) {
        const sessionRecords = records.get(record.session) ?? new Map<number, StoredRecord>();
        records.set(record.session, sessionRecords.set(record.seq, record));
      }
    },
    async clear(storageKey, session) {
      entries.delete(storageKey);
      sessions.delete(storageKey);
      records.delete(session);
    },
  };
}
