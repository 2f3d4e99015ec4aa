// poll.js - asks again and again while there is somebody to see it: not in a hidden tab, less often
// while it fails.

const POLL_MS_MAX = 30000;

// work: asks and draws. fault: told what went wrong; if it gives false, there is no use in asking
// again.
function pollMake(periodMs, work, fault) {
  let timer = 0;
  let on = false;
  let running = false;
  let wait = periodMs;

  async function step() {
    timer = 0;
    if (!on || running || document.hidden) return;
    running = true;
    let again = true;
    try {
      await work();
      wait = periodMs;
    } catch (e) {
      wait = Math.min(wait * 2, POLL_MS_MAX);
      again = fault(e);
    }
    running = false;
    if (on && again && !timer) timer = setTimeout(step, wait);
  }

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && on && !timer) step();
  });
  return {
    start() {
      on = true;
      wait = periodMs;
      if (!timer) step();
    },
    stop() {
      on = false;
      clearTimeout(timer);
      timer = 0;
    },
  };
}
