/**
 * Which pair a trial shows: the one the server has chosen from the answers so far, if it came in time, else the one
 * that was fixed when the session began. No trial waits for it.
 */

import type { ChoicesReply, Trials } from "./wire.ts";

export interface TrialPair {
  /** The two places, in pixels of the image. */
  locations: [x1: number, y1: number, x2: number, y2: number];
  chosen: boolean;
}

export class Choices {
  /** Items before which a block ends, since enough is known of its image. */
  readonly stops = new Set<number>();
  private readonly chosenPairs = new Map<number, TrialPair>();
  private readonly shownPairs = new Map<number, TrialPair>();

  /** Take in what came with a reply, or with the session. */
  update({ choices, stops }: ChoicesReply): void {
    choices?.item.forEach((item, index) => {
      const locations: TrialPair["locations"] = [choices.x1[index]!, choices.y1[index]!, choices.x2[index]!, choices.y2[index]!];
      this.chosenPairs.set(item, { locations, chosen: true });
    });
    stops?.forEach((item) => this.stops.add(item));
  }

  /** What an item shows. From its first showing on that stays, so that a trial asked again is the same one. */
  getPair(item: number, { x1, y1, x2, y2 }: Trials): TrialPair {
    const fixed = (): TrialPair => ({ locations: [x1[item]!, y1[item]!, x2[item]!, y2[item]!], chosen: false });
    const pair = this.shownPairs.get(item) ?? this.chosenPairs.get(item) ?? fixed();
    this.shownPairs.set(item, pair);
    return pair;
  }
}
