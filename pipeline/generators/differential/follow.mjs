/** The programs that a result leads to: what has to be looked at in another way, or at another place. */

import { get, local, spread } from './program.mjs';

/** The program that a hint of the worker's leads to. */
export function follow(program, { hint, at }) {
  switch (hint) {
    case 'wait':
      return [{ ...program, wait: true }];
    case 'cut':
      return [{ steps: program.steps.slice(0, at), observe: program.steps[at].expr, wait: program.steps[at].wait }];
    case 'message':
      return program.wait ? [] : [{ ...program, observe: get(program.observe, 'message') }];
    default: {
      if (!program.wait) return [{ ...program, observe: spread(program.observe, hint) }];
      const steps = [...program.steps, { bind: 'result', expr: program.observe, wait: true }];
      return program.steps.some((s) => s.bind === 'result')
        ? []
        : [{ steps, observe: spread(local('result'), hint), wait: false }];
    }
  }
}

/** The program that looks at what its call did to argument `at`. */
export function watching(program, at) {
  const name = 'given';
  const { observe } = program;
  const steps = [
    ...program.steps,
    { bind: name, expr: observe.args[at], wait: false },
    { bind: null, expr: { ...observe, args: observe.args.with(at, local(name)) }, wait: program.wait },
  ];
  return { steps, observe: local(name), wait: false };
}
