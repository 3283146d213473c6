/** One participant's session: its trials from the server, its records on this computer, and how they get together. */

import { type Delivery, Outbox, persistently } from "./outbox.ts";
import { type Given, Schedule } from "./schedule.ts";
import type { KeptSession, Shelf } from "./shelf.ts";
import {
  type Completed, type Entry, type Event, type EventKind, Refused, type Response, sessions, type State,
} from "./wire.ts";

export interface Place {
  shelf: Shelf;
  /** Who came to which study: the key under which this browser keeps the session. */
  who: string;
  watch: (delivery: Delivery, refusal?: Refused) => void;
}

export class Session {
  readonly state: State;
  readonly outbox: Outbox;
  private readonly kept: KeptSession;
  private readonly place: Place;

  private constructor(state: State, outbox: Outbox, kept: KeptSession, place: Place) {
    this.state = state;
    this.outbox = outbox;
    this.kept = kept;
    this.place = place;
  }

  /** A new session for someone who agreed; or, by their link or Prolific's name, the one they had elsewhere. */
  static async begin(entry: Entry, place: Place): Promise<Session> {
    const { token, ...state } = await persistently(() => sessions.begin(entry), () => place.watch("waiting"));
    const kept = { session: state.session, token };
    await place.shelf.keepSession(place.who, kept).catch(() => {});
    return Session.at(state, kept, place);
  }

  /** The session this browser had before a reload; null where there was none, or none the server knows of. */
  static async resume(place: Place): Promise<Session | null> {
    const kept = await place.shelf.session(place.who);
    if (!kept) return null;
    try {
      const state = await persistently(() => sessions.state(kept.token), () => place.watch("waiting"));
      return await Session.at(state, kept, place);
    } catch (error) {
      const unsent = (await place.shelf.records(kept.session)).some(({ sent }) => !sent);
      if (!(error instanceof Refused) || error.status === 409 || unsent) throw error;
      await place.shelf.clear(place.who, kept.session);
      return null;
    }
  }

  private static async at(state: State, kept: KeptSession, place: Place): Promise<Session> {
    const { shelf, watch } = place;
    const post = (records: Parameters<typeof sessions.records>[1], last?: boolean) =>
      sessions.records(kept.token, records, last);
    const outbox = await Outbox.open({ shelf, session: kept.session, post, watch });
    outbox.startAt(state.next_seq);
    if (state.repeat_block) {
      kept.repeat = { item: state.next_item, seq: outbox.next };
      await shelf.keepSession(place.who, kept).catch(() => {});
    }
    addEventListener("online", () => outbox.hasten());
    addEventListener("pagehide", () => outbox.lastWord());
    return new Session(state, outbox, kept, place);
  }

  /** Whether anything was reported before this page. */
  get begun(): boolean {
    return this.outbox.next > 0;
  }

  /** What this computer last reported of a kind: a calibration that need not be done again. */
  found<Data>(kind: EventKind): Data | undefined {
    return this.events(kind).at(-1)?.data as Data | undefined;
  }

  events(kind: EventKind): Event[] {
    return [...this.outbox.kept.values()].filter((record) => record.kind === kind) as Event[];
  }

  record(kind: EventKind, data: object): void {
    this.outbox.add({ kind, at_ms: Date.now(), data: { ...data } });
  }

  /** What is still to be asked, after everything this computer and the server know of. */
  schedule(every: number): Schedule {
    const schedule = new Schedule(this.state.trials, every);
    const responses = [...this.outbox.kept.values()].filter((record) => record.kind === "response");
    const here = responses.map((record) => given(record));
    const known = new Set(here.map(({ item }) => item));
    const elsewhere = (items: number[], good: boolean): Given[] =>
      items.filter((item) => !known.has(item)).map((item) => ({ item, good }));
    const { answered, asked_again } = this.state;
    schedule.recall([...here, ...elsewhere(answered, true), ...elsewhere(asked_again, false)]);
    const { repeat } = this.kept;
    if (repeat) {
      schedule.repeatFrom(repeat.item);
      schedule.recall(responses.filter(({ seq }) => seq >= repeat.seq).map((record) => given(record)));
    }
    return schedule;
  }

  /** Resolves once the server has counted and lacks nothing. Nothing then stays on this computer. */
  async complete(): Promise<Completed> {
    for (;;) {
      await this.outbox.flushed();
      try {
        const { token, session } = this.kept;
        const count = this.outbox.next;
        const completed = await persistently(() => sessions.complete(token, count), () => this.place.watch("waiting"));
        await this.place.shelf.clear(this.place.who, session);
        return completed;
      } catch (error) {
        if (!(error instanceof Refused) || !error.missing.length) throw error;
        this.outbox.resend(error.missing, { kind: "interruption", at_ms: Date.now(), data: { reason: "lost" } });
      }
    }
  }

  /** Leave for good, with the answers kept or withdrawn. Nothing then stays on this computer. */
  async leave(data: "keep" | "withdraw"): Promise<void> {
    const { token, session } = this.kept;
    if (data === "keep") {
      this.record("left", { data });
      await this.outbox.flushed();
    }
    this.outbox.close();
    await persistently(() => sessions.leave(token, data), () => this.place.watch("waiting"));
    await this.place.shelf.clear(this.place.who, session);
  }
}

/** Everything this computer has of a session, for the researcher, when nothing else works; null if it has nothing. */
export async function keptFile(shelf: Shelf, who: string): Promise<File | null> {
  const kept = await shelf.session(who);
  const records = kept ? await shelf.records(kept.session) : [];
  if (!kept || !records.length) return null;
  const content = { study: location.pathname, session: kept.session, records };
  return new File([JSON.stringify(content, null, 1)], `vseg-${kept.session}.json`, { type: "application/json" });
}

function given(record: object): Given {
  const { item, flags } = record as Response;
  return { item, good: flags === "" };
}
