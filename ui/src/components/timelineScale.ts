export interface Stretch {
  /** In seconds since the first began. */
  from: number;
  seconds: number;
}

export interface Scale {
  /** Where each stands, in percent. */
  places: { left: number; width: number }[];
  /** What the right edge means, in seconds. */
  end: number;
  isCut: boolean;
}

const CUT_OVER = 0.8;
/** The share that the others must have together. */
const WORTH_CUTTING = 0.005;
/** A phase that is cut keeps this share of the width. */
const CUT_SHARE = 0.12;

/** Places stretches of time on a line. One that takes more than 80 % of the whole is cut short. */
export function cutScale(stretches: readonly Stretch[]): Scale {
  const whole = Math.max(1e-6, ...stretches.map((one) => one.from + one.seconds));
  const long = stretches.length > 1 ? stretches.findIndex((one) => one.seconds > whole * CUT_OVER) : -1;
  const cut = stretches[long];
  // If the others are hardly anything, cutting would make a scale of moments out of them.
  if (!cut || whole - cut.seconds < whole * WORTH_CUTTING) {
    return { places: stretches.map((one) => ({ left: (one.from / whole) * 100, width: (one.seconds / whole) * 100 })), end: whole, isCut: false };
  }
  const shown = Math.max(1e-6, (whole - cut.seconds) / (1 - CUT_SHARE));
  const dropped = whole - shown;
  const at = (second: number) => {
    if (second <= cut.from) return second;
    const into = Math.min(1, (second - cut.from) / cut.seconds);
    return second - dropped * into;
  };
  return {
    places: stretches.map((one) => {
      const left = at(one.from);
      return { left: (left / shown) * 100, width: ((at(one.from + one.seconds) - left) / shown) * 100 };
    }),
    end: shown,
    isCut: true,
  };
}
