/**
 * The drawings of the phases of a trial. Each one is complete, with the photodiode patch, so that one frame shows it.
 */

import type { TrialCanvas } from "./canvas.ts";

export function createPhaseDrawings(canvas: TrialCanvas, image: string, locations: number[], question: string) {
  const picture = canvas.prepareImage(image);
  const [x1, y1, x2, y2] = locations as [number, number, number, number];
  const drawLocations = () => canvas.drawDots(picture, [[x1, y1], [x2, y2]]);
  return {
    empty: () => canvas.drawBackground(),
    cue: () => (canvas.drawBackground("cue"), drawLocations()),
    image: () => (canvas.drawImage(picture, "image"), drawLocations()),
    question: () => canvas.drawText(question),
  };
}
