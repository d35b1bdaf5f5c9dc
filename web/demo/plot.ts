import { element, svg } from "./dom.js";
import { number } from "./format.js";

const WIDTH = 600;
const HEIGHT = 220;
/** Number of values that the curve shows, over one minute. */
const SPAN = 120;
/** Milliseconds between two values of the curve. */
export const EACH_MS = 60_000 / SPAN;

/** A curve of one number over the last minute. */
export class Plot {
  readonly #values: number[] = Array.from({ length: SPAN + 1 }, () => 0);
  readonly #area = svg("path", { class: "area" });
  readonly #curve = svg("path", { class: "curve" });
  readonly #picture: SVGSVGElement;
  readonly #ys = element("div", { class: "ys", "aria-hidden": "true" });

  constructor(place: HTMLElement) {
    const lines = [0, 1, 2, 3, 4].map((k) => {
      const y = (HEIGHT * k) / 4;
      return svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y });
    });
    this.#picture = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      ...lines,
      this.#area,
      this.#curve,
    );
    const xs = ["1 min ago", "30 s", "now"].map((text) => element("span", {}, text));
    place.replaceChildren(
      element(
        "div",
        { class: "plot-box" },
        this.#ys,
        this.#picture,
        element("div", { class: "xs", "aria-hidden": "true" }, ...xs),
      ),
    );
    this.#draw();
  }

  /** Append the newest value to the curve. */
  push(value: number): void {
    this.#values.push(value);
    this.#values.shift();
    this.#draw();
  }

  #draw(): void {
    const top = ceiling(Math.max(...this.#values));
    const x = (index: number): number => (WIDTH * index) / SPAN;
    const y = (value: number): number => HEIGHT - (HEIGHT * value) / top;
    const curve = smooth(this.#values.map((value, index) => [x(index), y(value)]));
    this.#curve.setAttribute("d", curve);
    this.#area.setAttribute("d", `${curve}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`);
    const now = this.#values.at(-1) ?? 0;
    const most = Math.max(...this.#values);
    this.#picture.setAttribute(
      "aria-label",
      `Tokens per second over the last minute: ${number(now)} now, ${number(most)} at most`,
    );
    const labels = [top, top * 0.75, top * 0.5, top * 0.25, 0];
    this.#ys.replaceChildren(
      ...labels.map((value) => element("span", {}, String(Math.round(value * 10) / 10))),
    );
  }
}

/** A round number above all values, which can be divided into quarters. */
function ceiling(value: number): number {
  if (value <= 8) return 8;
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10];
  return (steps.find((step) => step * power >= value * 1.05) ?? 12) * power;
}

/**
 * The SVG path of a curve through points; its slope is level at each point, so it never overshoots.
 */
function smooth(points: readonly (readonly [number, number])[]): string {
  return points.reduce((path, [x, y], index) => {
    const before = points[index - 1];
    if (!before) return `M${x} ${y}`;
    const middle = (before[0] + x) / 2;
    return `${path}C${middle} ${before[1]} ${middle} ${y} ${x} ${y}`;
  }, "");
}
