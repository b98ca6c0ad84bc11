let issued = 0;

export function ticket(name) {
  issued += 1;
  return `${name}-${issued}`;
}

export const seat = (row, place) => (place > 20 ? `${row}+` : row);
