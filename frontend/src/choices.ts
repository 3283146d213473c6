/**
 * The pair that a trial shows. This is the pair the server has chosen from the answers so far if it arrived in time,
 * otherwise the pair that was fixed when the session began. No trial waits for a choice.
 */

import type { ChoicesReply, Trials } from "./wire.ts";

export interface TrialPair {
  /** The two locations, in pixels of the image. */
  locations: [x1: number, y1: number, x2: number, y2: number];
  chosen: boolean;
}

export class Choices {
  /** Items before which a block ends because the posterior of its image is precise enough. */
  readonly stops = new Set<number>();
  private readonly chosenPairs = new Map<number, TrialPair>();
  private readonly shownPairs = new Map<number, TrialPair>();

  /** Add the choices and stops from a reply of the server. */
  update({ choices, stops }: ChoicesReply): void {
    choices?.item.forEach((item, index) => {
      const { x1, y1, x2, y2 } = choices;
      const locations: TrialPair["locations"] = [x1[index]!, y1[index]!, x2[index]!, y2[index]!];
      this.chosenPairs.set(item, { locations, chosen: true });
    });
    stops?.forEach((item) => this.stops.add(item));
  }

  /** Return the pair of an item. It is fixed once the item has been shown, so a repeated trial shows the same pair. */
  getPair(item: number, { x1, y1, x2, y2 }: Trials): TrialPair {
    const fixed = (): TrialPair => ({ locations: [x1[item]!, y1[item]!, x2[item]!, y2[item]!], chosen: false });
    const pair = this.shownPairs.get(item) ?? this.chosenPairs.get(item) ?? fixed();
    this.shownPairs.set(item, pair);
    return pair;
  }
}
