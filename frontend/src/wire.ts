/**
 * What goes over the wire, under the names it has in the database. Every address is relative to the page, so the
 * experiment works behind any prefix.
 */

import type { Photodiode } from "./photodiode.ts";

/** `study.json`: what the page needs to know before anyone agreed to anything. */
export interface StudyInfo {
  name: string;
  title: string;
  language: string;
  open: boolean;
  reason: "full" | "closed" | "paused" | null;
  segments: number | "free";
  blocks: number;
  texts: Record<string, string>;
  timing: { preview_ms: number; cue_ms: number; image_ms: number; pause_ms: number };
  keys: { same: string; different: string; remappable: boolean };
  display: {
    width_deg: number;
    width_px: number;
    dot_deg: number;
    dot_px: number;
    background: number;
    window_px: [number, number];
    refresh_hz: number;
    full_screen: boolean;
  };
  calibration: { distance: boolean; gamma: boolean; gamma_matches: number; image_gamma: number };
  contours: { draw: boolean };
  practice: { trials: number; feedback: boolean };
  breaks: { every_trials: number; at_least_s: number };
  lab: { photodiode: Photodiode | null; markers: boolean };
  /** How often a trial is asked that was not shown right. */
  tries: number;
  personal_links_only: boolean;
  prolific: boolean;
  prolific_required: boolean;
}

/** The session's trials as columns; an item is a row's number. Only practice trials bring their answer. */
export interface Trials {
  image: string[];
  block: number[];
  trial: number[];
  x1: number[];
  y1: number[];
  x2: number[];
  y2: number[];
  practice: boolean[];
  catch: boolean[];
  answer: (boolean | null)[];
}

/** Pairs that the server has chosen from the answers so far, as columns: each in the place of that item's own. */
export interface ChosenPairs {
  item: number[];
  x1: number[];
  y1: number[];
  x2: number[];
  y2: number[];
}

/** What an adaptive study says with every reply. `stops`: items before which a block ends early. */
export interface ChoicesReply {
  choices?: ChosenPairs;
  stops?: number[];
}

/** The numbers of the records the server has stored for good. */
export interface RecordsReply extends ChoicesReply {
  stored: number[];
}

export interface ImageInfo {
  url: string;
  width_px: number;
  height_px: number;
}

/** Where a session stands, as the server knows it. */
export interface State extends ChoicesReply {
  session: string;
  participant: string;
  status: string;
  images: Record<string, ImageInfo>;
  trials: Trials;
  next_seq: number;
  next_item: number;
  /** Whether the block of `next_item` is to be done again from its beginning, after a long absence. */
  repeat_block: boolean;
  answered: number[];
  asked_again: number[];
}

/** A session that has begun, with the token that opens it. */
export type StartedSession = State & { token: string };

/** One trial, as it was shown and answered. Onsets are milliseconds of the page's clock. */
export interface Response {
  kind: "response";
  item: number;
  same: boolean;
  rt_ms: number;
  key: string;
  shown_at_ms: number;
  cue_onset_ms: number;
  cue_asked_ms: number;
  cue_ms: number;
  cue_frames: number;
  image_onset_ms: number;
  image_asked_ms: number;
  image_ms: number;
  image_frames: number;
  response_onset_ms: number;
  frames_dropped: number;
  longest_gap_ms: number;
  refresh_hz: number;
  visible: boolean;
  focused: boolean;
  full_screen: boolean;
  flags: string;
  /** Whether the pair was one the server has chosen, not the item's own. */
  chosen: boolean;
}

export type EventKind =
  | "consent" | "device" | "keys" | "distance" | "gamma" | "screen" | "resumed"
  | "break" | "interruption" | "contours" | "left" | "comment";

/** Everything else a session reports. */
export interface Event {
  kind: EventKind;
  at_ms: number;
  data: Record<string, unknown>;
}

export type Report = Response | Event;
/** A report with its place in the session: one counter from 0 for both kinds, without gaps. */
export type NumberedRecord = Report & { seq: number };

/** Who comes: from the address of the page, and `entry`, by which a request that is sent again begins nothing twice. */
export interface Entry {
  entry?: string;
  prolific_pid?: string;
  prolific_study?: string;
  prolific_session?: string;
  link?: string;
}

/** The end of the way: the code and the way back, where the study has them. */
export interface CompletionReply {
  completion_code: string | null;
  return_url: string | null;
}

interface ErrorBody {
  error?: string;
  reason?: string;
  message?: string;
  missing?: number[];
}

/** The server understood and said no: trying again would not help. */
export class RefusedError extends Error {
  readonly status: number;
  /** "full", "closed", "already", "link", "ended", "prolific", "missing", "unanswered", or the error's own name. */
  readonly reason: string;
  /** Records the server lacks, when it counted. */
  readonly missing: number[];

  constructor(status: number, body: ErrorBody) {
    super(body.message ?? `The server answered ${status}.`);
    this.status = status;
    this.reason = body.reason ?? body.error ?? String(status);
    this.missing = body.missing ?? [];
  }
}

const REFUSAL_STATUSES = new Set([401, 404, 409, 413, 422]);
const REQUEST_TIMEOUT_MS = 20_000;

/** The study of this page. */
export const fetchStudy = () => request<StudyInfo>("GET", "study.json");

/** What a participant would be given, for a researcher who is logged in; the server keeps nothing of it. */
export const fetchPreview = (name: string) => request<StartedSession>("GET", `../../api/studies/${name}/preview`);

/** Everything the page asks of the server in the name of one session. */
export interface Server {
  begin: (entry: Entry) => Promise<StartedSession>;
  state: (token: string) => Promise<State>;
  complete: (token: string, count: number) => Promise<CompletionReply>;
  leave: (token: string, data: "keep" | "withdraw") => Promise<object>;
  /** `last`: the page is going away. */
  records: (token: string, records: NumberedRecord[], last?: boolean) => Promise<RecordsReply>;
}

export const sessionServer: Server = {
  begin: (entry) => request("POST", "sessions", { body: { consented: true, ...entry } }),
  state: (token) => request("GET", "session", { token }),
  complete: (token, count) => request("POST", "complete", { token, body: { count } }),
  leave: (token, data) => request("POST", "leave", { token, body: { data } }),
  records: (token, records, last = false) => request("POST", "records", { token, body: { records }, keepalive: last }),
};

interface Options {
  token?: string;
  body?: object;
  keepalive?: boolean;
}

/** One request. Throws `Refused` where the server said no, another error where it could not be asked. */
async function request<Reply>(method: string, path: string, options: Options = {}): Promise<Reply> {
  const { token, body, keepalive = false } = options;
  const reply = await fetch(path, {
    method,
    keepalive,
    cache: "no-store",
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    headers: {
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...(body ? { "Content-Type": "application/json" } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  // A proxy or a hotel's log-in page may answer in the server's place: only JSON is an answer of ours.
  const content: unknown = await reply.json();
  if (typeof content !== "object" || content === null) throw new Error(`${path} answered no object.`);
  if (reply.ok) return content as Reply;
  if (REFUSAL_STATUSES.has(reply.status) && "error" in content) throw new RefusedError(reply.status, content as ErrorBody);
  throw new Error(`${path} answered ${reply.status}.`);
}

/** Who comes, from the address of the page: Prolific's parameters or a personal link. */
export function parseEntry(search: string): Entry {
  const parameters = new URLSearchParams(search);
  const names = {
    prolific_pid: "PROLIFIC_PID",
    prolific_study: "STUDY_ID",
    prolific_session: "SESSION_ID",
    link: "link",
  } as const;
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, key]) => (parameters.get(key) ? [[name, parameters.get(key)]] : [])),
  );
}
