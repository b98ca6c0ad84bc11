class Shape {
  constructor(side) {
    this.side = side;
  }

  size(unit) {
    return this.side > 9 ? `large ${unit}` : `small ${unit}`;
  }

  get around() {
    return this.side * 4;
  }

  area() {
    throw new Error('of no shape');
  }
}

export class Square extends Shape {
  area() {
    return this.side * this.side;
  }
}
