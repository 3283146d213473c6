/** What several measurements say together. */

/** Their mean; NaN of none. */
export function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Their median; null of none. */
export function median(numbers: readonly number[]): number | null {
  if (numbers.length === 0) return null;
  const sorted = [...numbers].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

/** Their standard deviation as a sample; null below two. */
export function standardDeviation(numbers: readonly number[]): number | null {
  if (numbers.length < 2) return null;
  const middle = mean(numbers);
  const squares = numbers.reduce((sum, number) => sum + (number - middle) ** 2, 0);
  return Math.sqrt(squares / (numbers.length - 1));
}
