/**
 * The messages between page and server, with the same names as in the database. All addresses are relative to the page,
 * so the experiment works behind any path prefix.
 */

import type { Photodiode } from "./photodiode.ts";

/** `study.json`: the information that the page needs before consent. */
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
  /** How often a trial is asked that was not shown correctly. */
  tries: number;
  personal_links_only: boolean;
  prolific: boolean;
  prolific_required: boolean;
}

/** The name of the image of practice trials, which catch trials show, too. */
export const PRACTICE_IMAGE = "practice";

/** The trials of the session as columns; an item is the number of a row. Only practice trials include their answer. */
export interface Trials {
  image: string[];
  block: number[];
  trial: number[];
  x1: number[];
  y1: number[];
  x2: number[];
  y2: number[];
  practice: boolean[];
  answer: (boolean | null)[];
}

/** Return whether practice trials are mixed into the blocks, as checks of attention. */
export function hasCatchTrials({ image, practice }: Trials): boolean {
  return image.some((name, item) => name === PRACTICE_IMAGE && !practice[item]);
}

/**
 * Pairs that the server has chosen from the answers so far, as columns. They replace the fixed pairs of their items.
 */
export interface ChosenPairs {
  item: number[];
  x1: number[];
  y1: number[];
  x2: number[];
  y2: number[];
}

/** Part of every reply in an adaptive study. `stops`: items before which a block ends early. */
export interface ChoicesReply {
  choices?: ChosenPairs;
  stops?: number[];
}

/** The numbers of the records that the server has stored. */
export interface RecordsReply extends ChoicesReply {
  stored: number[];
}

export interface ImageInfo {
  url: string;
  width_px: number;
  height_px: number;
}

/** The state of a session on the server. */
export interface State extends ChoicesReply {
  session: string;
  participant: string;
  status: string;
  images: Record<string, ImageInfo>;
  trials: Trials;
  next_seq: number;
  next_item: number;
  /** Whether the block of `next_item` is repeated from its start, after a long absence. */
  repeat_block: boolean;
  answered: number[];
  asked_again: number[];
}

/** A started session with its token. */
export type StartedSession = State & { token: string };

/** The response to one trial. Onsets are in milliseconds of the page's clock. */
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
  /** Whether the server chose the pair from the answers so far. */
  chosen: boolean;
}

export type EventKind =
  | "consent" | "device" | "keys" | "distance" | "gamma" | "screen" | "resumed"
  | "break" | "interruption" | "contours" | "left" | "comment";

/** Any other record of a session. */
export interface Event {
  kind: EventKind;
  at_ms: number;
  data: Record<string, unknown>;
}

export type Report = Response | Event;
/** A record with its number in the session: responses and events are counted together from 0, without gaps. */
export type NumberedRecord = Report & { seq: number };

/**
 * Identifies the participant, from the page's address. With the random ID `entry`, a repeated request starts no second
 * session.
 */
export interface Entry {
  entry?: string;
  prolific_pid?: string;
  prolific_study?: string;
  prolific_session?: string;
  link?: string;
}

/** Completion code and return address, if the study has them. */
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

/** The server received the request and refused it; repeating it would not help. */
export class RefusedError extends Error {
  readonly status: number;
  /** "full", "closed", "already", "link", "ended", "prolific", "missing", "unanswered", or the name of the error. */
  readonly reason: string;
  /** Numbers of the records that the server is missing. */
  readonly missing: number[];

  constructor(status: number, body: ErrorBody) {
    super(body.message ?? `The server returned status ${status}.`);
    this.status = status;
    this.reason = body.reason ?? body.error ?? String(status);
    this.missing = body.missing ?? [];
  }
}

const REFUSAL_STATUSES = new Set([401, 404, 409, 413, 422]);
const REQUEST_TIMEOUT_MS = 20_000;

/** Fetch the study of this page. */
export const fetchStudy = () => request<StudyInfo>("GET", "study.json");

/** Fetch the trials of a preview for a logged-in researcher; the server stores nothing. */
export const fetchPreview = (name: string) => request<StartedSession>("GET", `../../api/studies/${name}/preview`);

/** All requests about one session. */
export interface Server {
  begin: (entry: Entry) => Promise<StartedSession>;
  state: (token: string) => Promise<State>;
  complete: (token: string, count: number) => Promise<CompletionReply>;
  leave: (token: string, data: "keep" | "withdraw") => Promise<object>;
  /** Send records. `last`: the page is being unloaded. */
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

/** Send one request. Throw `RefusedError` if the server refuses, another error if it cannot be reached. */
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
  // A proxy or a hotel's login page may reply instead of the server, but not with JSON.
  const content: unknown = await reply.json();
  if (typeof content !== "object" || content === null) throw new Error(`Expected a JSON object from ${path}.`);
  if (reply.ok) return content as Reply;
  if (REFUSAL_STATUSES.has(reply.status) && "error" in content) {
    throw new RefusedError(reply.status, content as ErrorBody);
  }
  throw new Error(`${path} returned status ${reply.status}.`);
}

/** Parse Prolific's parameters or a personal link from the page's address. */
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
