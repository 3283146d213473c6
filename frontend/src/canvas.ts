/**
 * The canvas that trials are drawn on, at the screen's own resolution. Images are scaled and gamma-corrected
 * beforehand.
 */

import { type Display, fitSize } from "./display.ts";
import { isWhite, type Phase, type Photodiode, placeSquare } from "./photodiode.ts";
import type { ImageInfo } from "./wire.ts";

/** An image scaled and gamma-corrected for this screen; positions and sizes are in device pixels. */
export interface PreparedImage {
  pixels: HTMLCanvasElement;
  left: number;
  top: number;
  /** Device pixels per pixel of the image. */
  scale: number;
}

const RED = "rgb(255, 0, 0)";
const MARGIN = 0.94; // largest share of the window that an image may fill

export class TrialCanvas {
  readonly element: HTMLCanvasElement;
  private currentDisplay: Display;
  private readonly context: CanvasRenderingContext2D;
  private readonly images = new Map<string, { image: HTMLImageElement; info: ImageInfo }>();
  private readonly photodiode: Photodiode | null;
  private pictures = new Map<string, PreparedImage>();

  constructor(element: HTMLCanvasElement, display: Display, photodiode: Photodiode | null = null) {
    const context = element.getContext("2d", { alpha: false });
    if (!context) throw new Error("This browser does not support 2D canvas.");
    this.element = element;
    this.context = context;
    this.currentDisplay = display;
    this.photodiode = photodiode;
  }

  get display(): Display {
    return this.currentDisplay;
  }

  /** Set the display, and give the screens between trials the same grey so that nothing flickers. */
  set display(display: Display) {
    this.currentDisplay = display;
    this.pictures = new Map();
    const grey = display.background;
    document.documentElement.style.setProperty("--grey", `rgb(${grey}, ${grey}, ${grey})`);
    document.documentElement.style.setProperty("--on-grey", this.textColour);
  }

  /** Add a decoded image. */
  addImage(name: string, image: HTMLImageElement, info: ImageInfo): void {
    this.images.set(name, { image, info });
  }

  /** Return the decoded image, or undefined if it is not loaded. */
  getImage(name: string): HTMLImageElement | undefined {
    return this.images.get(name)?.image;
  }

  /** Return the image scaled and gamma-corrected; it is cached until the window or the display changes. */
  prepareImage(name: string): PreparedImage {
    this.fitToWindow();
    const picture = this.pictures.get(name) ?? this.createPicture(name);
    this.pictures.set(name, picture);
    return picture;
  }

  /** Return the width at which an image is shown, in CSS pixels. */
  width_px(name: string): number {
    return this.prepareImage(name).pixels.width / devicePixelRatio;
  }

  /** The side of the photodiode patch as it is drawn, in CSS pixels; null without a photodiode. */
  get patch_px(): number | null {
    return this.photodiode && this.placePatch(this.photodiode).size / devicePixelRatio;
  }

  /** Fill the canvas with grey and draw the photodiode patch for this phase. Every other drawing starts with this. */
  drawBackground(phase?: Phase): void {
    const { background: grey } = this.display;
    this.context.fillStyle = `rgb(${grey}, ${grey}, ${grey})`;
    this.context.fillRect(0, 0, this.element.width, this.element.height);
    if (!this.photodiode) return;
    const { left, top, size } = this.placePatch(this.photodiode);
    this.context.fillStyle = isWhite(this.photodiode, phase) ? "white" : "black";
    this.context.fillRect(left, top, size, size);
  }

  drawImage(picture: PreparedImage, phase?: Phase): void {
    this.drawBackground(phase);
    this.context.drawImage(picture.pixels, picture.left, picture.top);
  }

  /** Draw a red circle at each location, given in pixels of the image. */
  drawDots(picture: PreparedImage, locations: [x: number, y: number][]): void {
    const radius = (this.display.dot_px * devicePixelRatio) / 2;
    this.context.fillStyle = RED;
    for (const [x, y] of locations) {
      this.context.beginPath();
      this.context.arc(picture.left + x * picture.scale, picture.top + y * picture.scale, radius, 0, 2 * Math.PI);
      this.context.fill();
    }
  }

  /** Draw lines of text on grey, in the middle of the canvas. */
  drawText(text: string): void {
    this.drawBackground();
    const lines = text.split(/\n+| {3,}/);
    const first = this.element.height / 2 - (lines.length - 1) * 18 * devicePixelRatio;
    lines.forEach((line, index) => this.drawTextLine(line, first + index * 36 * devicePixelRatio));
  }

  /** Draw a line of text above the image, if there is enough space. */
  drawCaption(picture: PreparedImage, text: string): void {
    const middle = picture.top / 2;
    if (middle >= 14 * devicePixelRatio) this.drawTextLine(text, middle);
  }

  /** Place the photodiode patch. All images of the session count, so its size is the same in every trial. */
  private placePatch(photodiode: Photodiode) {
    const images = [...this.pictures.values()].map(({ pixels }) => pixels);
    return placeSquare(photodiode, devicePixelRatio, this.element, images);
  }

  /** Black or white, whichever is easier to read on the background. */
  private get textColour(): string {
    return this.currentDisplay.background > 110 ? "black" : "white";
  }

  private drawTextLine(text: string, y: number): void {
    this.context.font = `${20 * devicePixelRatio}px system-ui, sans-serif`;
    this.context.textAlign = "center";
    this.context.textBaseline = "middle";
    this.context.fillStyle = this.textColour;
    this.context.fillText(text, this.element.width / 2, y, 0.96 * this.element.width);
  }

  /** Resize the canvas to the window; clear the cached images if the size has changed. */
  private fitToWindow(): void {
    const width = Math.round(innerWidth * devicePixelRatio);
    const height = Math.round(innerHeight * devicePixelRatio);
    if (this.element.width === width && this.element.height === height) return;
    this.element.width = width;
    this.element.height = height;
    this.element.style.width = `${width / devicePixelRatio}px`;
    this.element.style.height = `${height / devicePixelRatio}px`;
    this.pictures = new Map();
    this.drawBackground();
  }

  private createPicture(name: string): PreparedImage {
    const loaded = this.images.get(name);
    if (!loaded) throw new Error(`Image ${name} was not loaded for this session.`);
    const available = { width: MARGIN * this.element.width, height: MARGIN * this.element.height };
    const size = fitSize(loaded.info, this.display.width_px * devicePixelRatio, available);
    const width = Math.round(size.width);
    const height = Math.round(size.height);
    const pixels = correctGamma(loaded.image, width, height, this.display.lut);
    const left = Math.round((this.element.width - width) / 2);
    const top = Math.round((this.element.height - height) / 2);
    return { pixels, left, top, scale: width / loaded.info.width_px };
  }
}

/** Return the image at this size, with every value mapped through the inverse gamma table of the screen. */
export function correctGamma(
  image: HTMLImageElement,
  width: number,
  height: number,
  lut: Uint8ClampedArray,
): HTMLCanvasElement {
  const element = document.createElement("canvas");
  element.width = width;
  element.height = height;
  const context = element.getContext("2d", { willReadFrequently: true })!;
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width, height);
  const data = context.getImageData(0, 0, width, height);
  for (let index = 0; index < data.data.length; index++) {
    if (index % 4 !== 3) data.data[index] = lut[data.data[index]!]!;
  }
  context.putImageData(data, 0, 0);
  return element;
}
