/** What each phase of a trial draws, whole, so that one frame shows it: the photodiode's patch goes with it. */

import type { TrialCanvas } from "./canvas.ts";

export function drawing(canvas: TrialCanvas, image: string, places: number[], question: string) {
  const picture = canvas.picture(image);
  const [x1, y1, x2, y2] = places as [number, number, number, number];
  const dots = () => canvas.dots(picture, [[x1, y1], [x2, y2]]);
  return {
    empty: () => canvas.background(),
    cue: () => (canvas.background("cue"), dots()),
    image: () => (canvas.show(picture, "image"), dots()),
    question: () => canvas.words(question),
  };
}
