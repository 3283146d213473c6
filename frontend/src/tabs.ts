/** One tab at a time: two would ask the same trials and number their records alike. */

/**
 * Resolves when this tab has the study to itself, which it keeps until it closes; `busy` is called if another tab has
 * it now. A browser that keeps no data of this site may refuse locks and channels alike: then nobody waits.
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

/** Resolves with whether the lock is ours; if so, it is held for good. */
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

/** What tabs say to each other: someone asks, by a number of chance, or is here. */
type TabMessage = { asks: number } | "here";

/**
 * Without locks (pages not served by https have none): ask whether anyone is there, and answer whoever asks later. Of
 * two who ask at the same time, the lower number wins.
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
