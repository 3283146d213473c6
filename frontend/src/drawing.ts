/** What each phase of a trial draws, whole, so that one frame shows it: the photodiode's patch goes with it. */

import type { Easel } from "./easel.ts";

export function drawing(easel: Easel, image: string, places: number[], question: string) {
  const picture = easel.picture(image);
  const [x1, y1, x2, y2] = places as [number, number, number, number];
  const dots = () => easel.dots(picture, [[x1, y1], [x2, y2]]);
  return {
    empty: () => easel.background(),
    cue: () => (easel.background("cue"), dots()),
    image: () => (easel.show(picture, "image"), dots()),
    question: () => easel.words(question),
  };
}
