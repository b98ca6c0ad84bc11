export function share(part, whole) {
  if (whole === 0) return NaN;
  return part / whole;
}

export function label(name, unit) {
  if (arguments.length < 2) return name;
  return `${name} (${unit})`;
}

export function initial(user) {
  return user.name[0];
}
