"use strict";

// The words of two texts and which of them are in both.

const LARGEST = 90000; // pairs of words that are compared at most

// Return the runs of both texts, each as [text, whether the other text has it too].
function compareWords(before, after) {
  const split = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
  const one = split(before);
  const two = split(after);
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < two.length - start && one.at(-1 - end) === two.at(-1 - end)) end += 1;
  const kept = commonWords(one.slice(start, one.length - end), two.slice(start, two.length - end));
  const runs = (words, side) => {
    const held = new Set(kept.map((pair) => pair[side] + start));
    return runsOf(words, (index) => index < start || index >= words.length - end || held.has(index));
  };
  return [runs(one, 0), runs(two, 1)];
}

// Return the places of the longest common subsequence; none of texts that differ too much to compare.
function commonWords(one, two) {
  if (one.length * two.length > LARGEST) return [];
  const width = two.length + 1;
  const best = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = two.length - 1; j >= 0; j -= 1) {
      const here = i * width + j;
      best[here] = one[i] === two[j] ? best[here + width + 1] + 1 : Math.max(best[here + width], best[here + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < two.length;) {
    if (one[i] === two[j]) pairs.push([i++, j++]);
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

function runsOf(words, isKept) {
  const found = [];
  words.forEach((word, index) => {
    const same = isKept(index);
    if (found.length && found.at(-1)[1] === same) found.at(-1)[0] += word;
    else found.push([word, same]);
  });
  return found;
}
