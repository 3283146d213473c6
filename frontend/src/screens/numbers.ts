/** Summary statistics of a few measurements. */

/** Return the mean; NaN without numbers. */
export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Return the median; null without numbers. */
export function median(numbers: readonly number[]): number | null {
  if (numbers.length === 0) return null;
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

/** Return the sample standard deviation; null with fewer than two numbers. */
export function standardDeviation(numbers: readonly number[]): number | null {
  if (numbers.length < 2) return null;
  const middle = mean(numbers);
  const squares = numbers.reduce((sum, number) => sum + (number - middle) ** 2, 0);
  return Math.sqrt(squares / (numbers.length - 1));
}
