import assert from "node:assert/strict";
import { test } from "node:test";

import { computeDisplay } from "./display.ts";
import { createPhaseDrawings } from "./trial-phases.ts";
import { TrialCanvas } from "./canvas.ts";
import { isWhite, type Photodiode, placeSquare } from "./photodiode.ts";
import { FrameTimer } from "./frame-timer.ts";
import type { StudyInfo } from "./wire.ts";

const study = {
  display: { width_deg: 10, width_px: 60, dot_deg: 0.25, dot_px: 4, background: 128 },
  calibration: { image_gamma: 2.2 },
} as StudyInfo;
const photodiode = { corner: "bottom-left", size_px: 20, phase: "image" } as const;
const corners = ["top-left", "top-right", "bottom-left", "bottom-right"] as const;
const SCREEN = { width: 200, height: 100 };

/** Create a canvas in memory with one colour per pixel; rectangles and images can be read back. */
function fakeCanvas({ width, height } = SCREEN) {
  let pixels: string[] = Array(width * height).fill("unset");
  const fill = (left: number, top: number, wide: number, high: number, colour: string) => {
    for (let y = top; y < top + high; y++) pixels.fill(colour, y * element.width + left, y * element.width + left + wide);
  };
  const context = {
    fillStyle: "",
    fillRect: (left: number, top: number, wide: number, high: number) => fill(left, top, wide, high, context.fillStyle),
    drawImage: (image: typeof element, left: number, top: number, wide = image.width, high = image.height) =>
      fill(left, top, wide, high, "image"),
    getImageData: () => ({ data: new Uint8ClampedArray() }),
    putImageData: () => {},
    beginPath: () => {},
    arc: () => {},
    fill: () => {},
    fillText: () => {},
  };
  const element = { width, height, style: {}, getContext: () => context, at: (x: number, y: number) => pixels[y * element.width + x] };
  return element;
}

/** Create a TrialCanvas in a window of this size, at this zoom. */
function trialCanvas(patch: Photodiode | null, ratio = 1, window = SCREEN, image = { width_px: 60, height_px: 60 }) {
  Object.assign(globalThis, {
    innerWidth: window.width / ratio,
    innerHeight: window.height / ratio,
    devicePixelRatio: ratio,
    document: { createElement: () => fakeCanvas() },
  });
  const screen = fakeCanvas(window);
  const canvas = new TrialCanvas(screen as unknown as HTMLCanvasElement, computeDisplay(study), patch);
  canvas.addImage("a", {} as HTMLImageElement, { url: "", ...image });
  canvas.prepareImage("a");
  return { screen, canvas };
}

/** Return the colour that a photodiode in the corner sees. */
const cornerColour = (screen: ReturnType<typeof fakeCanvas>, { corner }: Photodiode) =>
  screen.at(corner.endsWith("left") ? 2 : screen.width - 3, corner.startsWith("top") ? 2 : screen.height - 3);

for (const hz of [60, 120, 144]) {
  for (const phase of ["cue", "image"] as const) {
    test(`at ${hz} Hz the patch is white exactly in the frames of the ${phase}, with and without dropped frames`, async () => {
      for (const drop of [() => false, (frame: number) => frame % 11 === 0]) {
        const patch = { ...photodiode, phase };
        const { screen, canvas } = trialCanvas(patch);
        let frame = 0;
        const frames: { at: number; colour: string | undefined }[] = [];
        const timer = new FrameTimer(async () => {
          frames.push({ at: (frame * 1000) / hz, colour: cornerColour(screen, patch) }); // the final state of this frame
          do frame += 1;
          while (drop(frame));
          return (frame * 1000) / hz;
        });
        await timer.measure();
        const phases = createPhaseDrawings(canvas, "a", [1, 2, 3, 4], "?");
        for (let trial = 0; trial < 5; trial++) {
          await timer.waitForFrame();
          frames.length = 0;
          await timer.show(phases.empty, 100);
          const shown = { cue: await timer.show(phases.cue, 300), image: await timer.show(phases.image, 300) };
          timer.drawNow(phases.question);
          await timer.waitForFrame();
          await timer.waitForFrame();
          const white = frames.filter(({ colour }) => colour === "white").map(({ at }) => at);
          assert.equal(white[0], shown[phase].onset);
          assert.equal(white.length, shown[phase].frames);
          assert.ok(white.every((at) => at < shown[phase].onset + shown[phase].ms));
          assert.ok(frames.every(({ colour }) => colour === "white" || colour === "black"));
        }
      }
    });
  }
}

test("without a photodiode nothing is drawn into the corner", () => {
  const { screen, canvas } = trialCanvas(null);
  createPhaseDrawings(canvas, "a", [1, 2, 3, 4], "?").image();
  for (const corner of corners) assert.equal(cornerColour(screen, { ...photodiode, corner }), "rgb(128, 128, 128)");
  assert.equal(canvas.patch_px, null);
});

test("the patch has the requested size in CSS pixels, in each corner", () => {
  for (const corner of corners) {
    const { screen, canvas } = trialCanvas({ ...photodiode, corner }, 2);
    canvas.drawBackground("image");
    assert.equal(screen.at(screen.width / 2, 0), "rgb(128, 128, 128)");
    assert.equal(cornerColour(screen, { ...photodiode, corner }), "white");
  }
  const area = { width: 1000, height: 800 };
  const at = (corner: (typeof corners)[number]) => placeSquare({ ...photodiode, corner }, 1.5, area, []);
  assert.deepEqual(corners.map(at), [
    { left: 0, top: 0, size: 30 },
    { left: 970, top: 0, size: 30 },
    { left: 0, top: 770, size: 30 },
    { left: 970, top: 770, size: 30 },
  ]);
});

test("the patch never covers an image: in a narrow corner it is smaller", () => {
  const window = { width: 100, height: 100 };
  const { screen, canvas } = trialCanvas({ ...photodiode, size_px: 60 }, 1, window);
  assert.equal(canvas.patch_px, 20, "the space between the edge of the window and a centred image of 60 pixels");
  canvas.drawImage(canvas.prepareImage("a"), "image");
  const count = (colour: string) =>
    Array.from({ length: 100 * 100 }, (_, at) => screen.at(at % 100, Math.floor(at / 100))).filter((each) => each === colour);
  assert.equal(count("image").length, 60 * 60);
  assert.equal(count("white").length, 20 * 20);
});

test("only the phase that the study names makes the patch white", () => {
  assert.deepEqual([isWhite(photodiode, "image"), isWhite(photodiode, "cue"), isWhite(photodiode)], [true, false, false]);
});
