// The words that differ between two lines.

import type { Segment } from "../protocol";

/** Words beyond which two lines are not compared word by word. */
const MOST = 300;

function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

function joined(words: string[], isCommon: boolean[]): Segment[] {
  const segments: Segment[] = [];
  words.forEach((word, at) => {
    const isMatch = isCommon[at] !== true;
    const last = segments[segments.length - 1];
    if (last?.isMatch === isMatch) last.text += word;
    else segments.push({ text: word, isMatch });
  });
  return segments;
}

/** Both lines as pieces, of which those that only one of them has are marked. Null if they have too little in common. */
export function differingWords(before: string, after: string): { before: Segment[]; after: Segment[] } | null {
  const [old, now] = [words(before), words(after)];
  if (old.length === 0 || now.length === 0 || old.length > MOST || now.length > MOST) return null;
  // Lengths of the longest common subsequences of the rests.
  const lengths = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const row = lengths[i] as Uint16Array;
      const below = lengths[i + 1] as Uint16Array;
      row[j] = old[i] === now[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  const [inOld, inNow] = [old.map(() => false), now.map(() => false)];
  let common = 0;
  for (let i = 0, j = 0; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) {
      if (old[i]?.trim() !== "") common++;
      inOld[i++] = true;
      inNow[j++] = true;
    } else if ((lengths[i + 1]?.[j] ?? 0) >= (lengths[i]?.[j + 1] ?? 0)) i++;
    else j++;
  }
  return common === 0 ? null : { before: joined(old, inOld), after: joined(now, inNow) };
}
