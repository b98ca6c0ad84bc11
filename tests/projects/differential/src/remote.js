export async function headline(id, fetcher) {
  if (!id) throw new TypeError('an id is needed');
  const reply = await fetcher(id);
  if (reply.status !== 200) return null;
  return reply.title.trim();
}
