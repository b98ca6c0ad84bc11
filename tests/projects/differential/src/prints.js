export function shout(word) {
  const line = word.repeat(10_000);
  for (let i = 0; i < 2_500; i++) process.stdout.write(line);
  return word.toUpperCase();
}
