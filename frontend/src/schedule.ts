/**
 * What comes next: pure, so that every way through the experiment can be tested without one.
 *
 * Block by block: a start, the preview of its image, its trials in order, then those again that were not shown
 * right (`tries` times in all, then the last one stays as it is). Whatever already has an answer is not asked again,
 * so a reload goes on at the next trial; `repeatFrom` asks one block's answers anew, `stop` ends a block early.
 */

import type { Trials } from "./wire.ts";

export type Step =
  | { kind: "block"; block: Block; number: number; blocks: number }
  | { kind: "preview"; image: string }
  | { kind: "break"; percent: number }
  | { kind: "trial"; item: number }
  | { kind: "end" };

/** Items that belong together: one block of one image, or the practice. */
export interface Block {
  first: number;
  end: number;
  image: string;
  practice: boolean;
}

/** An answer given before: by this tab, or known to the server. */
export interface PastAnswer {
  item: number;
  good: boolean;
}

export class Schedule {
  readonly blocks: Block[];
  private readonly answered = new Set<number>();
  private readonly attempts = new Map<number, number>();
  private readonly breakEvery: number;
  private readonly tries: number;
  private openedBlock = -1;
  private previewedBlock = -1;
  private trialsSinceBreak = 0;
  private hadBreak = true;

  /**
   * `recall` tells it what was already given. `every`: a rest after so many trials; 0: only between blocks. `tries`:
   * how often a trial is asked that is never shown right.
   */
  constructor(trials: Trials, breakEvery: number, tries: number) {
    this.blocks = splitIntoBlocks(trials);
    this.breakEvery = breakEvery;
    this.tries = tries;
  }

  /** Take an answer into account; a flagged one is asked again, unless it was the last attempt. */
  answer(answer: PastAnswer): void {
    const attempts = (this.attempts.get(answer.item) ?? 0) + 1;
    this.attempts.set(answer.item, attempts);
    if (answer.good || attempts >= this.tries) this.answered.add(answer.item);
    this.trialsSinceBreak += 1;
    this.hadBreak = false;
  }

  /** Answers from before a reload: they count, but nobody needs a rest from them. */
  restoreAnswers(answers: PastAnswer[]): void {
    answers.forEach((answer) => this.answer(answer));
    this.trialsSinceBreak = 0;
    this.hadBreak = true;
  }

  /** The last answer to an item did not count after all: as if it had been flagged. */
  retract(item: number): void {
    if ((this.attempts.get(item) ?? 0) < this.tries) this.answered.delete(item);
  }

  /** Ask everything of the block of `item` again. */
  repeatFrom(item: number): void {
    const block = this.blocks.find(({ first, end }) => first <= item && item < end);
    for (let other = block?.first ?? 0; other < (block?.end ?? 0); other++) {
      this.answered.delete(other);
      this.attempts.delete(other);
    }
  }

  /** End the block of `item` before it: enough is known. Answers to what lies behind stay, and nothing of it is asked. */
  endBlockBefore(item: number): void {
    const block = this.blocks.find(({ first, end }) => first <= item && item < end);
    if (block) block.end = item;
  }

  /** How much is done, of a hundred. */
  get percent(): number {
    let total = 0;
    let done = 0;
    for (const { first, end } of this.blocks) {
      total += end - first;
      for (let item = first; item < end; item++) if (this.answered.has(item)) done += 1;
    }
    return Math.floor((100 * done) / Math.max(1, total));
  }

  /** Whether some of a block's questions have been answered: after a reload it goes on in the middle. */
  hasAnswers({ first, end }: Block): boolean {
    for (let item = first; item < end; item++) if (this.answered.has(item)) return true;
    return false;
  }

  /** The next step. Calling it again without an answer gives the step after: a trial stays until it is answered. */
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
      return { kind: "block", block, ...this.countBlocks(index) };
    }
    if (this.previewedBlock < index) {
      this.previewedBlock = index;
      return { kind: "preview", image: block.image };
    }
    return { kind: "trial", item };
  }

  /** The item to ask in a block: the first without any answer, then the first to be asked again. */
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

  /** The how many-th block of how many, the practice not counted. */
  private countBlocks(index: number): { number: number; blocks: number } {
    const countReal = (blocks: Block[]) => blocks.filter(({ practice }) => !practice).length;
    return { number: countReal(this.blocks.slice(0, index + 1)), blocks: countReal(this.blocks) };
  }
}

/** Blocks of consecutive items. Catch trials show another image; they never begin a block. */
function splitIntoBlocks(trials: Trials): Block[] {
  const blocks: Block[] = [];
  let number = -1;
  trials.image.forEach((image, item) => {
    const last = blocks.at(-1);
    const practice = trials.practice[item] ?? false;
    const same = last && last.practice === practice && trials.block[item] === number;
    if (last && same && (trials.catch[item] || image === last.image)) {
      last.end = item + 1;
      return;
    }
    number = trials.block[item] ?? 0;
    blocks.push({ first: item, end: item + 1, image, practice });
  });
  return blocks;
}
