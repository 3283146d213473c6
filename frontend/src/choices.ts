/**
 * Which pair a trial shows: the one the server has chosen from the answers so far, if it came in time, else the one
 * that was fixed when the session began. No trial waits for it.
 */

import type { ChoicesReply, Trials } from "./wire.ts";

export interface AskedPair {
  /** The two places, in pixels of the image. */
  places: [x1: number, y1: number, x2: number, y2: number];
  chosen: boolean;
}

export class Choices {
  /** Items before which a block ends, since enough is known of its image. */
  readonly stops = new Set<number>();
  private readonly ahead = new Map<number, AskedPair>();
  private readonly begun = new Map<number, AskedPair>();

  /** Take in what came with a reply, or with the session. */
  update({ choices, stops }: ChoicesReply): void {
    choices?.item.forEach((item, at) => {
      const places: AskedPair["places"] = [choices.x1[at]!, choices.y1[at]!, choices.x2[at]!, choices.y2[at]!];
      this.ahead.set(item, { places, chosen: true });
    });
    stops?.forEach((item) => this.stops.add(item));
  }

  /** What an item shows. From its first showing on that stays, so that a trial asked again is the same one. */
  of(item: number, { x1, y1, x2, y2 }: Trials): AskedPair {
    const fixed = (): AskedPair => ({ places: [x1[item]!, y1[item]!, x2[item]!, y2[item]!], chosen: false });
    const asked = this.begun.get(item) ?? this.ahead.get(item) ?? fixed();
    this.begun.set(item, asked);
    return asked;
  }
}
