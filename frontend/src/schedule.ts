/**
 * The order of steps in the experiment, as pure logic that can be tested without a page.
 *
 * Each block consists of a start, the preview of its image, its trials in order, then repeats of the trials that were
 * not shown correctly (`tries` attempts in all; after the last one the answer counts). Answered items are not asked
 * again, so a reload continues at the next trial. `repeatFrom` repeats one block, `endBlockBefore` ends a block early.
 */

import { PRACTICE_IMAGE, type Trials } from "./wire.ts";

export type Step =
  | { kind: "block"; block: Block; number: number; blocks: number }
  | { kind: "preview"; image: string }
  | { kind: "break"; percent: number }
  | { kind: "trial"; item: number }
  | { kind: "end" };

/** Consecutive items: one block of one image, or the practice trials. */
export interface Block {
  first: number;
  end: number;
  image: string;
  practice: boolean;
}

/**
 * An answer given earlier, in this tab or known to the server. `good`: its trial was shown correctly. `refused`: the
 * server did not store it.
 */
export interface PastAnswer {
  item: number;
  good: boolean;
  refused?: boolean;
}

export class Schedule {
  readonly blocks: Block[];
  private readonly answered = new Set<number>();
  private readonly attempts = new Map<number, number>();
  private readonly refusals = new Map<number, number>();
  private readonly breakEvery: number;
  private readonly tries: number;
  private openedBlock = -1;
  private previewedBlock = -1;
  private trialsSinceBreak = 0;
  private hadBreak = true;

  /**
   * Create the schedule; add earlier answers with `restoreAnswers`. There is a break after every `breakEvery` trials
   * of a block (0: only between blocks). A trial that is never shown correctly is asked `tries` times.
   */
  constructor(trials: Trials, breakEvery: number, tries: number) {
    this.blocks = splitIntoBlocks(trials);
    this.breakEvery = breakEvery;
    this.tries = tries;
  }

  /** Add an answer. The item is asked again if its trial was not shown correctly and attempts are left. */
  answer(answer: PastAnswer): void {
    const attempts = (this.attempts.get(answer.item) ?? 0) + 1;
    this.attempts.set(answer.item, attempts);
    const stored = attempts - (this.refusals.get(answer.item) ?? 0);
    if (answer.good || stored >= this.tries) this.answered.add(answer.item);
    if (answer.refused) this.retract(answer.item);
    this.trialsSinceBreak += 1;
    this.hadBreak = false;
  }

  /** Add answers from before a reload; they do not bring the next break closer. */
  restoreAnswers(answers: PastAnswer[]): void {
    answers.forEach((answer) => this.answer(answer));
    this.trialsSinceBreak = 0;
    this.hadBreak = true;
  }

  /**
   * Ask an item again, because the server refused its last answer; give it up after `tries` refusals. The server does
   * not count refused answers, and does not complete a session whose flagged trials were not asked often enough.
   */
  retract(item: number): void {
    const refusals = (this.refusals.get(item) ?? 0) + 1;
    this.refusals.set(item, refusals);
    if (refusals < this.tries) this.answered.delete(item);
    else this.answered.add(item);
  }

  /** Repeat all items of the block that contains `item`. */
  repeatFrom(item: number): void {
    const block = this.blocks.find(({ first, end }) => first <= item && item < end);
    for (let other = block?.first ?? 0; other < (block?.end ?? 0); other++) {
      this.answered.delete(other);
      this.attempts.delete(other);
      this.refusals.delete(other);
    }
  }

  /** End the block that contains `item` before it. Later items of the block are not asked; answers to them stay. */
  endBlockBefore(item: number): void {
    const block = this.blocks.find(({ first, end }) => first <= item && item < end);
    if (block) block.end = item;
  }

  /** Percentage of items that are answered. */
  get percent(): number {
    let total = 0;
    let done = 0;
    for (const { first, end } of this.blocks) {
      total += end - first;
      for (let item = first; item < end; item++) if (this.answered.has(item)) done += 1;
    }
    return Math.floor((100 * done) / Math.max(1, total));
  }

  /** Return whether some items of a block are answered, so that it is resumed and not started. */
  hasAnswers({ first, end }: Block): boolean {
    for (let item = first; item < end; item++) if (this.answered.has(item)) return true;
    return false;
  }

  /** Return the next step. Each call moves on, except that a trial is returned until it is answered. */
  next(): Step {
    const index = this.blocks.findIndex((block) => this.nextItem(block) !== undefined);
    const block = this.blocks[index];
    const item = block && this.nextItem(block);
    if (block === undefined || item === undefined) return { kind: "end" };
    if (this.isBreakDue(index)) {
      this.trialsSinceBreak = 0;
      this.hadBreak = true;
      return { kind: "break", percent: this.percent };
    }
    if (this.openedBlock < index) {
      this.openedBlock = index;
      this.trialsSinceBreak = 0; // those of practice, which no break follows
      return { kind: "block", block, ...this.countBlocks(index) };
    }
    if (this.previewedBlock < index) {
      this.previewedBlock = index;
      return { kind: "preview", image: block.image };
    }
    return { kind: "trial", item };
  }

  /** Return the next item of a block: the first without an answer, then the one to repeat with the fewest attempts. */
  private nextItem({ first, end }: Block): number | undefined {
    let again: number | undefined;
    for (let item = first; item < end; item++) {
      if (this.answered.has(item)) continue;
      const attempts = this.attempts.get(item) ?? 0;
      if (attempts === 0) return item;
      if (again === undefined || attempts < (this.attempts.get(again) ?? 0)) again = item;
    }
    return again;
  }

  private isBreakDue(index: number): boolean {
    const before = this.blocks[this.openedBlock];
    if (this.hadBreak || before === undefined || before.practice) return false;
    return this.openedBlock < index || (this.breakEvery > 0 && this.trialsSinceBreak >= this.breakEvery);
  }

  /** Return the number of this block and the number of all blocks; practice is not counted. */
  private countBlocks(index: number): { number: number; blocks: number } {
    const countReal = (blocks: Block[]) => blocks.filter(({ practice }) => !practice).length;
    return { number: countReal(this.blocks.slice(0, index + 1)), blocks: countReal(this.blocks) };
  }
}

/** Split the trials into blocks of consecutive items. Catch trials show another image but never start a block. */
function splitIntoBlocks(trials: Trials): Block[] {
  const blocks: Block[] = [];
  let number = -1;
  trials.image.forEach((image, item) => {
    const last = blocks.at(-1);
    const practice = trials.practice[item] ?? false;
    const same = last && last.practice === practice && trials.block[item] === number;
    if (last && same && (image === PRACTICE_IMAGE || image === last.image)) {
      last.end = item + 1;
      return;
    }
    number = trials.block[item] ?? 0;
    blocks.push({ first: item, end: item + 1, image, practice });
  });
  return blocks;
}
