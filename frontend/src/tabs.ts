/** Allow one tab at a time: two tabs would ask the same trials and number their records alike. */

/**
 * Resolve when no other tab has this study open; this tab then keeps it until it closes. `onBusy` is called if another
 * tab has it now. If the browser blocks both locks and channels, resolve at once.
 */
export async function waitForOnlyTab(study: string, onBusy: () => void): Promise<void> {
  const name = `vseg ${study}`;
  await waitByLock(name, onBusy)
    .catch(() => waitByAsking(name, onBusy))
    .catch(() => {});
}

async function waitByLock(name: string, onBusy: () => void): Promise<void> {
  if (await acquireLock(name, { ifAvailable: true })) return;
  onBusy();
  await acquireLock(name, {});
}

/** Resolve with whether this tab has acquired the lock, which it then keeps. */
function acquireLock(name: string, options: LockOptions): Promise<boolean> {
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, options, (lock) => {
        resolve(lock !== null);
        return lock ? new Promise<never>(() => {}) : undefined;
      })
      .catch(reject);
  });
}

const ANSWER_MS = 300;
const ASK_AGAIN_MS = 2000;

/** A message between tabs: a question with a random number, or the reply of the tab that has the study. */
type TabMessage = { asks: number } | "here";

/**
 * Wait without locks, which exist only on https pages: ask whether another tab has the study, and reply to tabs that
 * ask later. If two tabs ask at the same time, the lower number wins.
 */
export async function waitByAsking(name: string, onBusy: () => void): Promise<void> {
  const channel = new BroadcastChannel(name);
  for (let notified = false; await anotherTabAnswers(channel); notified = true) {
    channel.onmessage = null;
    if (!notified) onBusy();
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
  channel.onmessage = ({ data }: MessageEvent<TabMessage>) => data !== "here" && channel.postMessage("here");
}

function anotherTabAnswers(channel: BroadcastChannel): Promise<boolean> {
  const mine = Math.random();
  return new Promise((resolve) => {
    channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
      if (data === "here" || data.asks < mine) resolve(true);
      else channel.postMessage("here");
    };
    channel.postMessage({ asks: mine });
    setTimeout(() => resolve(false), ANSWER_MS);
  });
}
