/** The `curvebook` program: finds the command of a command line, runs it, and reports its errors. */
import { readCommandLine, type CommandLine } from './arguments.js';
import type { Io } from './commands/command.js';
import { COMMANDS, OVERVIEW, SERVE } from './commands/list.js';
import { UsageError } from './errors.js';
import { EXIT_FAILED } from './exit-codes.js';
import { printable } from './printable.js';
import { VERSION } from './version.js';

const VERSION_NAMES: readonly string[] = ['--version', '-V', '-v', 'version'];

/** Runs one command line to its end and returns the exit code: 1 for a mistake or a failure, with the reason on `io.errors`. */
export async function runProgram(args: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = args;
  try {
    if (name === undefined || name === '--help' || name === '-h') return tell(io, OVERVIEW);
    if (VERSION_NAMES.includes(name)) return tell(io, `curvebook ${VERSION}\n`);
    if (name === 'help') return tell(io, helpOf(rest));
    if (name === 'serve') return await serve(rest, io);
    const command = commandNamed(name);
    const { help, options, ofVerbs, maxArguments } = command;
    const line = readCommandLine(rest, { name, help, options, ofVerbs });
    if (line.help) return tell(io, help);
    refuseBeyond(maxArguments, line);
    const run = await command.load();
    return await run(line, io);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (rest.includes('--json')) io.output.write(`${JSON.stringify({ ok: false, code: codeOf(error), message })}\n`);
    else io.errors.write(`${printable(message)}\n`);
    return EXIT_FAILED;
  }
}

async function serve(args: readonly string[], io: Io): Promise<number> {
  const line = readCommandLine(args, { name: 'serve', help: SERVE.help });
  if (line.help) return tell(io, SERVE.help);
  refuseBeyond(SERVE.maxArguments, line);
  const { runServe } = await import('./serve.js');
  return runServe(line);
}

/** Throws UsageError for more arguments than there may be. */
function refuseBeyond(maxArguments: number, { positionals }: CommandLine): void {
  const unexpected = positionals[maxArguments];
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
}

function tell({ output }: Io, text: string): number {
  output.write(text);
  return 0;
}

/** Throws ConfigError for a name that no command has. */
function commandNamed(name: string): (typeof COMMANDS)[string] {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) throw new UsageError(`unknown command: ${name}; curvebook --help lists all`);
  return command;
}

function helpOf([name, unexpected]: readonly string[]): string {
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
  if (name === undefined) return OVERVIEW;
  return name === 'serve' ? SERVE.help : commandNamed(name).help;
}

/** The stable code of an error, `FAILED` for one without. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z_]+$/.test(code) ? code : 'FAILED';
}
