/**
 * Time the phases of a trial in frames. A phase is drawn in an animation frame and stays until the frame closest to the
 * requested duration. The timing is measured, not assumed.
 *
 *     await timer.waitForFrame();
 *     const cue = await timer.show(drawCue, 300);      // {onset, ms, frames, dropped, longest_gap}
 *     const image = await timer.show(drawImage, 300);
 *     const onset = timer.drawNow(drawQuestion);
 */

/** Resolve with the start of the next frame in milliseconds: requestAnimationFrame, or simulated time in tests. */
export type Clock = () => Promise<number>;

export const screenClock: Clock = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** The measured timing of a phase. */
export interface PhaseTiming {
  onset: number;
  ms: number;
  frames: number;
  dropped: number;
  longest_gap: number;
  /** Frames dropped right after drawing; the phase may have become visible only after them. */
  dropped_after_draw: number;
}

const INTERVALS = 60; // the refresh interval is the median of this many intervals

/** Maximum plausible refresh rate. A page that measures more has an unreliable clock. */
export const MAX_REFRESH_HZ = 500;

export class FrameTimer {
  /** Start of the current frame; drawings made now become visible in it. */
  now = 0;
  private readonly clock: Clock;
  private intervals: number[] = [];
  private refresh: number;

  constructor(clock: Clock = screenClock, refresh_ms = 1000 / 60) {
    this.clock = clock;
    this.refresh = refresh_ms;
  }

  /** The refresh interval of the screen: the median of the last 60 intervals between frames. */
  get refresh_ms(): number {
    return this.refresh;
  }

  get refresh_hz(): number {
    return 1000 / this.refresh;
  }

  /** Measure the refresh from 60 new intervals; return the measured rate in Hz, even if it is implausible. */
  async measure(): Promise<number> {
    this.intervals = [];
    await this.waitForFrame();
    for (let count = 0; count < INTERVALS; count++) await this.nextFrame();
    this.updateRefresh();
    return 1000 / median(this.intervals);
  }

  /** Wait for a frame after a pause; the pause does not count as an interval. */
  async waitForFrame(): Promise<void> {
    this.now = await this.clock();
  }

  /** Draw now, wait for `duration_ms`, and return in the frame in which the next phase is to be drawn. */
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

  /** Draw now and return the onset; the drawing stays. */
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
 * Return whether a phase was not shown as requested: off by more than half a frame, or possibly visible too late. A
 * frame dropped in the middle of a phase is counted but harmless, because the stimulus does not move.
 */
export function isLate(phases: { requested_ms: number; measured: PhaseTiming }[], refresh_ms: number): boolean {
  return phases.some(
    ({ requested_ms, measured }) =>
      measured.dropped_after_draw > 0 || Math.abs(measured.ms - requested_ms) > refresh_ms / 2 + 0.5,
  );
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
