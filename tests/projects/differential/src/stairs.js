/** The stair that so many steps end on, where every fifth is a landing and costs none. */
export function stairAfter(steps) {
  let stair = 0;
  for (let left = steps; left > 0; stair++) if (stair % 5 !== 4) left--;
  if (stair > 731) throw new RangeError(`${steps} steps end above the roof`);
  return stair;
}
