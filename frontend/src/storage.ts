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
  loadEntry(storageKey: string): Promise<string | undefined>;
  storeEntry(storageKey: string, entry: string): Promise<void>;
  loadSession(storageKey: string): Promise<StoredSession | undefined>;
  storeSession(storageKey: string, session: StoredSession): Promise<void>;
  loadRecords(session: string): Promise<StoredRecord[]>;
  storeRecords(records: StoredRecord[]): Promise<void>;
  /** Nothing of this session stays. */
  clear(storageKey: string, session: string): Promise<void>;
}

/** How long anyone waits for this computer's disk: to be there at all, then for each thing read or written. */
export const OPEN_MS = 10_000;
const DISK_MS = 3_000;

/** The browser's database; where it has none (some private windows) or it never opens, memory, which a reload empties. */
export async function openStorage(): Promise<BrowserStorage> {
  try {
    return indexedDbStorage(await withTimeout(openDatabase(), OPEN_MS));
  } catch {
    return memoryStorage();
  }
}

/** The same promise, which rejects where nothing has come of it after so long. */
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

/** Every read and write rejects, and throws nothing, where the disk is full, gone, or does not answer for `disk_ms`. */
export function indexedDbStorage(database: Pick<IDBDatabase, "transaction">, disk_ms = DISK_MS): BrowserStorage {
  /** Resolves when what was written is on the disk. */
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

/** The same, for as long as the page lives. */
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
