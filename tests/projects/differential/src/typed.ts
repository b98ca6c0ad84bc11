export interface Options {
  mode?: 'wide' | 'narrow';
  limit?: number;
}

enum Gap {
  Wide = 4,
  Narrow = 1,
}

export abstract class Tool {
  abstract mark(n: number): string;
}

export class Ruler extends Tool {
  constructor(private readonly unit: string) {
    super();
  }

  mark(n: number): string;
  mark(n: number): string {
    return `${n}${this.unit}`;
  }
}

export function gap(count: number, options: Options = {}): number {
  const each: number = options.mode === 'wide' ? Gap.Wide : Gap.Narrow;
  const all = count * each;
  return options.limit !== undefined && all > options.limit ? -1 : (all as number);
}
