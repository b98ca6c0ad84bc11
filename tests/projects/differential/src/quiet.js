/** An error that does not say where it comes from: to find that out costs time. */
function missing(key) {
  const error = new Error(`no ${key}`);
  error.stack = error.message;
  return error;
}

export function under(record, key) {
  if (!(key in record)) throw missing(key);
  return record[key];
}

export const lengthOf = (record, key) => (record[key] === undefined ? 0 : under(record, key).length);
