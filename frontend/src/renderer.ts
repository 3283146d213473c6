/** What trials are shown with: the canvas, the clock of its frames, and the images, all there before they are needed. */

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

  /** Fetch and decode the images while the participant reads. */
  load(images: State["images"], waiting: () => void): void {
    if (!this.study.display.full_screen) this.measure(); // else in full screen, which may refresh otherwise
    this.loading = Promise.all([this.loading, ...Object.entries(images).map(async ([name, info]) => {
      this.canvas.addImage(name, await retryUntilReply(() => decodeImage(info.url), waiting), info);
    })]);
  }

  /** Learn the refresh of the screen, once. */
  measure(): void {
    if (!this.measured) this.loading = Promise.all([this.loading, this.timer.measure()]);
    this.measured = true;
  }

  /** Resolves when the images are decoded and the refresh is known. */
  async ready(): Promise<void> {
    this.measure();
    await this.loading;
  }

  /** Make every picture as it will be shown, and show the empty canvas. */
  prepare(display: Display, images: string[]): void {
    this.canvas.display = display;
    document.body.dataset["step"] = "preview"; // the canvas takes over
    for (const name of images) this.canvas.prepareImage(name);
    this.canvas.drawBackground();
  }

  /** What the screen is like, and how it shows an image. */
  describeDisplay(image: string): object {
    const { px_per_deg, gamma, dot_px, background, degrees, width_px: asked_px } = this.canvas.display;
    const width_px = this.canvas.width_px(image);
    const { photodiode } = this.study.lab;
    return {
      image,
      width_px,
      width_deg: degrees(width_px),
      width_deg_asked: px_per_deg && this.study.display.width_deg,
      shrunk: width_px < asked_px - 1, // it would not fit into the window
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
      page_opened_at_ms: performance.timeOrigin, // the zero of all onsets
    };
  }
}

async function decodeImage(url: string): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}
