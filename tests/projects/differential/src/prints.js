export function shout(word) {
  const line = word.repeat(1000);
  for (let i = 0; i < 25_000; i++) process.stdout.write(line);
  return word.toUpperCase();
}
