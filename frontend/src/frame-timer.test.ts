import assert from "node:assert/strict";
import { test } from "node:test";

import { type Clock, isLate, FrameTimer } from "./frame-timer.ts";

/**
 * Simulate a screen with this refresh rate. Time stamps are off by up to `jitter_ms`; `drop` selects dropped frames.
 */
function screen(hz: number, { jitter_ms = 0, drop = (_frame: number) => false, seed = 1 } = {}): Clock {
  let frame = 0;
  let state = seed;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  return async () => {
    do frame += 1;
    while (drop(frame));
    return 1000 + (frame * 1000) / hz + jitter_ms * (2 * random() - 1);
  };
}

for (const hz of [60, 100, 120, 144, 240]) {
  test(`at ${hz} Hz with jitter, a phase ends in the frame closest to its duration`, async () => {
    const timer = new FrameTimer(screen(hz, { jitter_ms: 0.3 }));
    const measured = await timer.measure();
    assert.ok(Math.abs(measured - hz) / hz < 0.02, `measured ${measured}`);
    for (let trial = 0; trial < 200; trial++) {
      await timer.waitForFrame();
      for (const requested_ms of [300, 100, 50]) {
        const shown = await timer.show(() => {}, requested_ms);
        assert.ok(Math.abs(shown.ms - requested_ms) <= 500 / hz + 0.7, `${requested_ms} ms became ${shown.ms}`);
        assert.equal(shown.frames, Math.round((requested_ms * hz) / 1000));
        assert.equal(shown.dropped, 0);
        assert.equal(isLate([{ requested_ms, measured: shown }], timer.refresh_ms), false);
      }
    }
  });
}

test("300 ms are 18 frames at 60 Hz, 36 at 120, 43 at 144", async () => {
  const frames = async (hz: number) => {
    const timer = new FrameTimer(screen(hz));
    await timer.measure();
    return (await timer.show(() => {}, 300)).frames;
  };
  assert.deepEqual(await Promise.all([60, 120, 144].map(frames)), [18, 36, 43]);
});

test("the next phase is drawn in the frame in which the previous one ends", async () => {
  const timer = new FrameTimer(screen(60));
  await timer.waitForFrame();
  const drawings: [string, number][] = [];
  const draw = (name: string) => () => void drawings.push([name, timer.now]);
  const cue = await timer.show(draw("cue"), 300);
  const image = await timer.show(draw("image"), 300);
  const onset = timer.drawNow(draw("question"));
  assert.deepEqual(drawings.map(([name]) => name), ["cue", "image", "question"]);
  assert.deepEqual(drawings.map(([, at]) => at), [cue.onset, cue.onset + cue.ms, image.onset + image.ms]);
  assert.equal(onset, image.onset + image.ms);
});

test("a frame dropped in the middle of a phase is counted, but the phase is not late", async () => {
  const timer = new FrameTimer(screen(60, { drop: (frame) => frame === 70 }));
  await timer.measure();
  const shown = await timer.show(() => {}, 300);
  assert.equal(shown.dropped, 1);
  assert.ok(Math.abs(shown.longest_gap - 2000 / 60) < 1e-6);
  assert.ok(Math.abs(shown.ms - 300) < 1);
  assert.equal(shown.frames, 17);
  assert.equal(isLate([{ requested_ms: 300, measured: shown }], timer.refresh_ms), false);
});

test("a frame dropped right after drawing makes a phase late", async () => {
  const timer = new FrameTimer(screen(60, { drop: (frame) => frame === 62 }));
  await timer.measure();
  const shown = await timer.show(() => {}, 300);
  assert.equal(shown.dropped_after_draw, 1);
  assert.ok(Math.abs(shown.ms - 300) < 1);
  assert.equal(isLate([{ requested_ms: 300, measured: shown }], timer.refresh_ms), true);
});

test("frames dropped at the end make a phase too long and late", async () => {
  const timer = new FrameTimer(screen(120, { drop: (frame) => frame >= 95 && frame <= 100 }));
  await timer.measure();
  const shown = await timer.show(() => {}, 300);
  assert.ok(shown.ms > 310, `${shown.ms}`);
  assert.ok(shown.dropped >= 3);
  assert.equal(isLate([{ requested_ms: 300, measured: shown }], timer.refresh_ms), true);
});

test("the measured refresh follows a screen that changes its rate", async () => {
  let rate = 60;
  let now = 0;
  const timer = new FrameTimer(async () => (now += 1000 / rate));
  await timer.measure();
  rate = 120;
  for (let trial = 0; trial < 4; trial++) await timer.show(() => {}, 300);
  assert.ok(Math.abs(timer.refresh_hz - 120) < 1, `${timer.refresh_hz}`);
  assert.equal((await timer.show(() => {}, 300)).frames, 36);
});

test("a few dropped frames do not change the measured refresh", async () => {
  const timer = new FrameTimer(screen(144, { drop: (frame) => frame % 10 === 0 }));
  assert.ok(Math.abs((await timer.measure()) - 144) < 1e-6);
});

test("a phase of 0 ms is not drawn", async () => {
  const timer = new FrameTimer(screen(60));
  await timer.waitForFrame();
  const shown = await timer.show(() => assert.fail("a phase of 0 ms was drawn"), 0);
  assert.deepEqual([shown.ms, shown.frames, shown.dropped], [0, 0, 0]);
});

test("a pause between trials is not a dropped frame", async () => {
  let now = 0;
  const timer = new FrameTimer(async () => (now += 1000 / 60));
  await timer.measure();
  now += 5000;
  await timer.waitForFrame();
  const shown = await timer.show(() => {}, 300);
  assert.equal(shown.dropped, 0);
});

test("an implausible clock is reported but not used", async () => {
  for (const [step, expected] of [[0, Infinity], [1, 1000]] as const) {
    let now = 1000;
    const timer = new FrameTimer(async () => (now += step));
    assert.equal(await timer.measure(), expected);
    assert.equal(timer.refresh_ms, 1000 / 60);
  }
});
