const SPACE = 32;
const WIDE = 12288; // as between words of Japanese

/** How far a line is indented. */
export function depthOf(line) {
  let depth = 0;
  while (line.charCodeAt(depth) === SPACE || line.charCodeAt(depth) === WIDE) depth++;
  return depth;
}
