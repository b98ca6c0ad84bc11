export function grade(answer) {
  if (answer.length !== 12) return 'short';
  return answer.endsWith('zyx') ? 'good' : 'bad';
}
