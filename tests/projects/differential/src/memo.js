const seen = new Map();

export function area(shape) {
  const key = `${shape.kind}:${shape.size}`;
  if (!seen.has(key)) seen.set(key, shape.kind === 'square' ? shape.size ** 2 : shape.size * 3);
  return seen.get(key);
}
