/** The programs that a result leads to: what has to be looked at in another way, or at another place. */

import { call, get, global, list, local, spread, spy, typeOf } from './program.mjs';
import { sites } from './values.mjs';

/** The program that a hint of the worker's leads to. */
export function follow(program, { hint, at, names = [] }) {
  switch (hint) {
    case 'wait':
      return [{ ...program, wait: true }];
    case 'cut':
      return [{ steps: program.steps.slice(0, at), observe: program.steps[at].expr, wait: program.steps[at].wait }];
    case 'message':
      return program.wait ? [] : [{ ...program, observe: get(program.observe, 'message') }];
    case 'keys':
      return program.wait ? [] : [keysOf(program.observe), ...names.map((name) => get(wholeOf(program.observe), name))].map((observe) => ({ ...program, observe }));
    default: {
      if (!program.wait) return [{ ...program, observe: spread(program.observe, hint) }];
      const steps = [...program.steps, { bind: 'result', expr: program.observe, wait: true }];
      return program.steps.some((s) => s.bind === 'result')
        ? []
        : [{ steps, observe: spread(local('result'), hint), wait: false }];
    }
  }
}

const wholeOf = (expr) => (expr.k === 'spread' ? expr.of : expr);
const keysOf = (expr) => call(get(global('Object'), 'keys'), [wholeOf(expr)]);

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

/** Programs that ask only whether there is something to use: what a mutant that gives nothing at all fails. */
export function asking(program, members) {
  const { observe, wait } = program;
  const [first] = members.filter((m) => m.call && m.name);
  const asked = [observe, ...(first ? [get(observe, first.name)] : [])];
  return wait ? [] : asked.map((of) => ({ ...program, observe: typeOf(of) }));
}

/** Programs that look at how a callback was called, one for each that a program gives. */
export function spying(program, variations) {
  const calls = local('calls');
  const isTaken = program.steps.some((s) => s.bind === calls.name);
  const callbacks = sites(program, variations).filter(({ expr }) => expr.k === 'code' && !/^\//.test(expr.text));
  return (isTaken ? [] : callbacks).map(({ expr, put }) => {
    const { steps, observe, wait } = put(spy(calls, expr.text));
    const made = { bind: calls.name, expr: list([]), wait: false };
    return { steps: [made, ...steps, { bind: null, expr: observe, wait }], observe: calls, wait: false };
  });
}
