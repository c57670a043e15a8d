// The one clock of a page. It ticks in steps, of all sides alike, or in bytes asked of global memory: then each side stands at
// the last step that it has begun when so many bytes have been moved. While the launch as a whole is shown, it ticks in steps of the launch.

class Clock {
  constructor(sides) {
    this.sides = sides;
    this.unit = "steps";
    this.ofLaunch = false;
    this.ticks = [0];
    this.at = 0;
  }

  // After another block has been chosen: what the ticks are.
  restart() {
    if (this.ofLaunch) {
      this.ticks = [...Array(Math.max(...this.sides.map((side) => endOf(planOf(side)))) + 1).keys()];
    } else if (this.unit === "steps") {
      this.ticks = [...Array(Math.max(...this.sides.map((side) => side.steps().length))).keys()];
    } else {
      const begun = new Set();
      for (const side of this.sides) side.steps().forEach((_, i) => begun.add(side.work(0, i)));
      this.ticks = [...begun].sort((a, b) => a - b);
    }
    this.go(0);
  }

  go(tick) {
    this.at = Math.min(Math.max(tick, 0), this.ticks.length - 1);
    if (this.ofLaunch) return;
    for (const side of this.sides) {
      const last = side.steps().length - 1;
      if (this.unit === "steps") {
        side.step = Math.min(this.at, last);
      } else {
        side.step = 0;
        while (side.step < last && side.work(0, side.step + 1) <= this.ticks[this.at]) side.step++;
      }
    }
  }

  atEnd() { return this.at === this.ticks.length - 1; }
  words() {
    if (this.ofLaunch) return `${this.ticks[this.at]} of ${this.ticks.at(-1)}`;
    return this.unit === "steps" ? `${this.at + 1} of ${this.ticks.length}` : `${bytes(this.ticks[this.at])} of ${bytes(this.ticks.at(-1))}`;
  }
}
