export function rank(players, bonus) {
  for (const player of players) {
    if (player.streak > 2) player.points += bonus;
  }
  players.sort((a, b) => b.points - a.points);
}
