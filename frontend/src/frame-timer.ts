/**
 * Frames, not timeouts. A phase is drawn in an animation frame and stays until the frame closest to its asked
 * duration; what was achieved is measured, not assumed.
 *
 *     await stage.ready();
 *     const cue = await stage.show(drawCue, 300);      // {onset, ms, frames, dropped, longest_gap}
 *     const image = await stage.show(drawImage, 300);
 *     const onset = stage.switch(drawQuestion);
 */

/** When the next frame begins, in milliseconds: requestAnimationFrame, or a test's own time. */
export type Clock = () => Promise<number>;

export const screenClock: Clock = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** What was achieved of a phase. */
export interface PhaseTiming {
  onset: number;
  ms: number;
  frames: number;
  dropped: number;
  longest_gap: number;
  /** Frames dropped right after the drawing: it was perhaps not seen before they were over. */
  dropped_after_draw: number;
}

const INTERVALS = 60; // intervals the refresh is the median of

/** No screen is faster: a page that measures more has a clock that does not tell the time. */
export const MAX_REFRESH_HZ = 500;

export class FrameTimer {
  /** The frame we are in: what is drawn now is seen from it on. */
  now = 0;
  private readonly clock: Clock;
  private intervals: number[] = [];
  private refresh: number;

  constructor(clock: Clock = screenClock, refresh_ms = 1000 / 60) {
    this.clock = clock;
    this.refresh = refresh_ms;
  }

  /** One refresh of the screen: the median of the last 60 intervals between frames. */
  get refresh_ms(): number {
    return this.refresh;
  }

  get refresh_hz(): number {
    return 1000 / this.refresh;
  }

  /** Learn the refresh from 60 fresh intervals; returns what they say, believable or not. */
  async measure(): Promise<number> {
    this.intervals = [];
    await this.waitForFrame();
    for (let count = 0; count < INTERVALS; count++) await this.nextFrame();
    this.updateRefresh();
    return 1000 / median(this.intervals);
  }

  /** Wait for a frame after a time without; the way there is not an interval. */
  async waitForFrame(): Promise<void> {
    this.now = await this.clock();
  }

  /** Draw now, keep for `asked` milliseconds, return in the frame in which the next phase is to be drawn. */
  async show(draw: () => void, duration_ms: number): Promise<PhaseTiming> {
    const onset = this.now;
    const { refresh } = this;
    let frames = 0;
    let dropped = 0;
    let longest_gap = 0;
    let dropped_after_draw = 0;
    if (duration_ms > 0) draw();
    while (this.now - onset < duration_ms - refresh / 2) {
      const gap = await this.nextFrame();
      frames += 1;
      const missed = Math.max(0, Math.round(gap / refresh) - 1);
      if (frames === 1) dropped_after_draw = missed;
      dropped += missed;
      longest_gap = Math.max(longest_gap, gap);
    }
    this.updateRefresh();
    return { onset, ms: this.now - onset, frames, dropped, longest_gap, dropped_after_draw };
  }

  /** Draw now and leave it there; its onset. */
  drawNow(draw: () => void): number {
    draw();
    return this.now;
  }

  private updateRefresh(): void {
    const estimate = this.intervals.length >= INTERVALS ? median(this.intervals) : NaN;
    if (estimate >= 1000 / MAX_REFRESH_HZ) this.refresh = estimate;
  }

  private async nextFrame(): Promise<number> {
    const before = this.now;
    this.now = await this.clock();
    this.intervals.push(this.now - before);
    if (this.intervals.length > INTERVALS) this.intervals.shift();
    return this.now - before;
  }
}

/**
 * Whether phases were not shown as asked: off by more than half a frame, or perhaps begun late. A frame dropped in
 * the middle is counted but does no harm, since nothing moves.
 */
export function isLate(phases: { requested_ms: number; measured: PhaseTiming }[], refresh_ms: number): boolean {
  return phases.some(
    ({ requested_ms, measured }) => measured.dropped_after_draw > 0 || Math.abs(measured.ms - requested_ms) > refresh_ms / 2 + 0.5,
  );
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
