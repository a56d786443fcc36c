/** The `curvebook` program: which command a command line names, and what becomes of its errors. */
import { readCommandLine } from './arguments.js';
import { archiveCommand } from './commands/archive.js';
import { checkpointCommand } from './commands/checkpoint.js';
import { claimCommand } from './commands/claim.js';
import type { Command, Io } from './commands/command.js';
import { haltCommand, resumeCommand } from './commands/halt.js';
import { makerCommand } from './commands/maker.js';
import { marketCommand } from './commands/market.js';
import { outboxCommand } from './commands/outbox.js';
import { reconcileCommand } from './commands/reconcile.js';
import { statusCommand } from './commands/status.js';
import { tokenCommand } from './commands/token.js';
import { suspenseCommand } from './commands/suspense.js';
import { verifyCommand } from './commands/verify.js';
import { UsageError } from './config.js';
import { SERVE_HELP, SERVE_SUMMARY, serveCommand } from './serve.js';
import { VERSION } from './version.js';

/** Operator commands by name. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  maker: makerCommand,
  market: marketCommand,
  token: tokenCommand,
  status: statusCommand,
  verify: verifyCommand,
  reconcile: reconcileCommand,
  halt: haltCommand,
  resume: resumeCommand,
  suspense: suspenseCommand,
  checkpoint: checkpointCommand,
  outbox: outboxCommand,
  archive: archiveCommand,
  claim: claimCommand,
};

const OVERVIEW = `curvebook <command> [options]

${Object.entries({ serve: { summary: SERVE_SUMMARY }, ...COMMANDS })
  .map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`)
  .join('\n')}

\`curvebook help <command>\` says more of each; \`curvebook --version\` which release this is. Every command but \`serve\` takes --json.

Exit codes: 0 done; 1 refused or failed, with the reason on standard error, or as {"ok":false,…} on standard output with --json;
2 \`verify\` found a difference; 3 \`reconcile\` is asked for and not carried out yet; 4 \`resume\` found no halt; 5 the cause
of a halt stands; 75 \`serve\` wants to be started again.
`;

/** Runs one command line to its end and returns the exit code: 1 for a mistake or a failure, with the reason on `io.errors`. */
export async function runProgram(args: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = args;
  try {
    if (name === undefined || name === '--help' || name === '-h') return tell(io, OVERVIEW);
    if (name === '--version' || name === '-V' || name === 'version') return tell(io, `curvebook ${VERSION}\n`);
    if (name === 'help') return tell(io, helpOf(rest));
    if (name === 'serve') return await serveCommand(rest);
    const command = commandNamed(name);
    const line = readCommandLine(rest);
    if (line.help) return tell(io, command.help);
    const unexpected = line.positionals[command.maxArguments];
    if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
    return await command.run(line, io);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (rest.includes('--json')) io.output.write(`${JSON.stringify({ ok: false, code: codeOf(error), message })}\n`);
    else io.errors.write(`${message}\n`);
    return 1;
  }
}

function tell({ output }: Io, text: string): number {
  output.write(text);
  return 0;
}

/** Throws ConfigError for a name that no command has. */
function commandNamed(name: string): Command {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) throw new UsageError(`unknown command: ${name}; curvebook --help lists all`);
  return command;
}

function helpOf([name, unexpected]: readonly string[]): string {
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
  if (name === undefined) return OVERVIEW;
  return name === 'serve' ? SERVE_HELP : commandNamed(name).help;
}

/** The stable code of an error, `FAILED` for one without. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z_]+$/.test(code) ? code : 'FAILED';
}
