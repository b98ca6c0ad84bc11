import { allocate, lineTotal, shippingCost, taxIncluded, voucherDiscount } from './pricing.js';

const MAX_PER_PRODUCT = 200;

/** What a customer is about to buy: one line for each product, in the order they were added. */
export class Cart {
  #lines = new Map();
  #voucher = null;

  add(product, quantity = 1) {
    const before = this.#lines.get(product.sku)?.quantity ?? 0;
    return this.setQuantity(product, before + quantity);
  }

  setQuantity(product, quantity) {
    const limit = Math.min(product.limit ?? MAX_PER_PRODUCT, MAX_PER_PRODUCT);
    if (quantity > limit) {
      throw new RangeError(`no more than ${limit} of ${product.sku} in one order`);
    }
    if (quantity <= 0) {
      this.#lines.delete(product.sku);
    } else {
      this.#lines.set(product.sku, { product, quantity });
    }
    return this;
  }

  remove(sku) {
    if (!this.#lines.delete(sku)) throw new Error(`${sku} is not in the cart`);
    return this;
  }

  /** Takes over a guest's cart at sign-in: the larger quantity of each product wins. */
  merge(guest) {
    for (const { product, quantity } of guest.#lines.values()) {
      const own = this.#lines.get(product.sku);
      if (!own || own.quantity < quantity) this.setQuantity(product, quantity);
    }
    this.#voucher ||= guest.#voucher;
    return this;
  }

  redeem(voucher) {
    if (this.#voucher && !voucher.replaces) {
      throw new Error(`only one voucher an order: ${this.#voucher.code} is already in use`);
    }
    voucherDiscount(this.subtotal, voucher);
    this.#voucher = voucher;
    return this;
  }

  get count() {
    return this.#sum(({ quantity }) => quantity);
  }

  get subtotal() {
    return this.#sum(totalOf);
  }

  /** Everything the checkout page shows, in cents. */
  totals({ abroad, express } = {}) {
    const lines = [...this.#lines.values()];
    const { subtotal } = this;
    const discount = this.#discount();
    const shares = allocate(discount, lines.map(totalOf));
    let tax = 0;
    for (const [index, line] of lines.entries()) {
      tax += taxIncluded(totalOf(line) - shares[index], line.product.tax);
    }
    const grams = this.#sum(({ product, quantity }) => (product.grams ?? 0) * quantity);
    const shipping = shippingCost({ grams, subtotal: subtotal - discount, abroad, express });
    return { subtotal, discount, shipping, tax, total: subtotal - discount + shipping };
  }

  // A voucher whose minimum is no longer met stays in the cart, without effect.
  #discount() {
    const minimum = this.#voucher?.minimum ?? 0;
    if (!this.#voucher || this.subtotal < minimum) return 0;
    return voucherDiscount(this.subtotal, this.#voucher);
  }

  #sum(valueOf) {
    let result = 0;
    for (const line of this.#lines.values()) result += valueOf(line);
    return result;
  }
}

function totalOf({ product, quantity }) {
  return lineTotal({ ...product, quantity });
}
