export function pairs(items, visit) {
  for (let i = 1; i < items.length; i++) {
    if (visit(items[i - 1], items[i]) === false) return;
  }
}
