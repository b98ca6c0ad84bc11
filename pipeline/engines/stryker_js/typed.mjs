// What a compiler would refuse of our tests is marked as meant: a test may give what callers without types could give.
import path from 'node:path';

const EXPECTED = '// @ts-expect-error: as code without types may call it';
const ROUNDS = 3; // behind an error another one may stand

// codes: [text] of tests that will stand in `file`, under `imports`: [statement]; with a comment above each line that the
// project's own TypeScript finds fault with. Those that it does not read are as they were, and so is a text in which that
// does not help.
export function marked(ts, file, imports, codes) {
  const parsed = configuration(ts, file);
  if (!parsed) return codes;
  const known = new Map();
  const read = (some) => faults(compiled(ts, parsed, file, [...imports, ...some].join('\n'), known), file, imports, some);
  let texts = codes;
  for (let round = 0; round < ROUNDS; round++) {
    const found = read(texts);
    if (!found.some((lines) => lines.size)) return texts;
    texts = texts.map((text, i) => withMarks(text, found[i]));
  }
  const left = read(texts);
  return texts.map((text, i) => (left[i].size ? codes[i] : text));
}

// The compiler's configuration, where it is about the tests beside `file` too.
function configuration(ts, file) {
  const found = ts.findConfigFile(path.dirname(file), ts.sys.fileExists);
  if (!found) return null;
  const parsed = ts.getParsedCommandLineOfConfigFile(found, {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic() {} });
  const suffix = /(\.\w+)?\.[cm]?ts$/.exec(file)?.[0];
  const isBeside = (name) => path.dirname(name) === path.dirname(file) && name.endsWith(suffix);
  return suffix && parsed?.fileNames.some(isBeside) ? parsed : null;
}

// The program with `whole` for the file's text; known: the other files, as far as they have been read.
function compiled(ts, { options }, file, whole, known) {
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists.call(host, name);
  host.getSourceFile = (name, language, ...rest) => {
    if (name === file) return ts.createSourceFile(name, whole, language, true);
    if (!known.has(name)) known.set(name, getSourceFile.call(host, name, language, ...rest));
    return known.get(name);
  };
  return ts.createProgram([file], { ...options, noEmit: true, noUnusedLocals: false }, host);
}

// Of each text the lines, from 0 on, that errors are on.
function faults(program, file, imports, texts) {
  const source = program.getSourceFile(file);
  const lines = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
    ({ start }) => source.getLineAndCharacterOfPosition(start ?? 0).line,
  );
  let first = imports.join('\n').split('\n').length - (imports.length ? 0 : 1);
  return texts.map((text) => {
    const count = text.split('\n').length;
    const own = lines.filter((line) => line >= first && line < first + count).map((line) => line - first);
    first += count;
    return new Set(own);
  });
}

function withMarks(text, lines) {
  const marked = text.split('\n').flatMap((line, i) => (lines.has(i) ? [/^\s*/.exec(line)[0] + EXPECTED, line] : [line]));
  return marked.join('\n');
}
