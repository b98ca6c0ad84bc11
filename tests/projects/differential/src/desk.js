export class Desk {
  #waiting = new Map();
  #last = 0;

  take(name) {
    const ticket = `T${++this.#last}`;
    this.#waiting.set(ticket, { name, calls: 0 });
    return ticket;
  }

  call(ticket) {
    const guest = this.#waiting.get(ticket);
    if (!guest) throw new Error('no such ticket');
    guest.calls += 1;
    if (guest.calls > 3) this.#waiting.delete(ticket);
    return guest.name;
  }

  get length() {
    return this.#waiting.size;
  }
}
