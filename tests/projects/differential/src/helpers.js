export function invoice(lines, customer) {
  const net = lines.filter((line) => line.quantity > 0).reduce((sum, line) => sum + line.price * line.quantity, 0);
  return { net, vat: vatOf(net, customer), name: customer.name.trim() };
}

function vatOf(net, customer) {
  if (customer.country !== 'NL' && customer.vatId) return 0;
  return Math.round(net * 0.21);
}
