/** The canvas, the frame timer and the images that trials need, all loaded before the first trial. */

import { type Display, computeDisplay } from "./display.ts";
import { el } from "./dom.ts";
import { TrialCanvas } from "./canvas.ts";
import { retryUntilReply } from "./outbox.ts";
import { createBlackCorner } from "./photodiode.ts";
import { FrameTimer } from "./frame-timer.ts";
import type { State, StudyInfo } from "./wire.ts";

export class Renderer {
  readonly timer = new FrameTimer();
  readonly canvas: TrialCanvas;
  private readonly study: StudyInfo;
  private loading: Promise<unknown> = Promise.resolve();
  private measured = false;

  constructor(study: StudyInfo) {
    this.study = study;
    const { photodiode } = study.lab;
    const canvas = el("canvas", { id: "trial-canvas", "aria-hidden": "true" });
    document.body.append(...(photodiode ? [createBlackCorner(photodiode)] : []), canvas);
    this.canvas = new TrialCanvas(canvas, computeDisplay(study), photodiode);
  }

  /** Load and decode the images in the background. */
  load(images: State["images"], waiting: () => void): void {
    // Otherwise it is measured in full screen, where the refresh may differ.
    if (!this.study.display.full_screen) this.measure();
    this.loading = Promise.all([this.loading, ...Object.entries(images).map(async ([name, info]) => {
      this.canvas.addImage(name, await retryUntilReply(() => decodeImage(info.url), waiting), info);
    })]);
  }

  /** Measure the refresh of the screen, once. */
  measure(): void {
    if (!this.measured) this.loading = Promise.all([this.loading, this.timer.measure()]);
    this.measured = true;
  }

  /** Resolve when the images are decoded and the refresh is measured. */
  async ready(): Promise<void> {
    this.measure();
    await this.loading;
  }

  /** Prepare the images for this display and show the empty canvas. */
  prepare(display: Display, images: string[]): void {
    this.canvas.display = display;
    document.body.dataset["step"] = "preview"; // makes the canvas visible
    for (const name of images) this.canvas.prepareImage(name);
    this.canvas.drawBackground();
  }

  /** Describe the screen and how it shows this image, for the event `screen`. */
  describeDisplay(image: string): object {
    const { px_per_deg, gamma, dot_px, background, degrees, width_px: asked_px } = this.canvas.display;
    const width_px = this.canvas.width_px(image);
    const { photodiode } = this.study.lab;
    return {
      image,
      width_px,
      width_deg: degrees(width_px),
      width_deg_asked: px_per_deg && this.study.display.width_deg,
      shrunk: width_px < asked_px - 1, // it does not fit into the window
      dot_px,
      px_per_deg,
      gamma,
      background,
      photodiode: photodiode && { ...photodiode, size_px: this.canvas.patch_px },
      refresh_hz: this.timer.refresh_hz,
      device_pixel_ratio: devicePixelRatio,
      window_width_px: innerWidth,
      window_height_px: innerHeight,
      full_screen: document.fullscreenElement !== null,
      page_opened_at_ms: performance.timeOrigin, // the time that all onsets are relative to
    };
  }
}

async function decodeImage(url: string): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}
