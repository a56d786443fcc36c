/** The `curvebook` program: which command a command line names, and what becomes of its errors. */
import { readCommandLine } from './arguments.js';
import { checkpointCommand } from './commands/checkpoint.js';
import { claimCommand } from './commands/claim.js';
import type { Command, Io } from './commands/command.js';
import { haltCommand, resumeCommand } from './commands/halt.js';
import { makerCommand } from './commands/maker.js';
import { marketCommand } from './commands/market.js';
import { outboxCommand } from './commands/outbox.js';
import { reconcileCommand } from './commands/reconcile.js';
import { statusCommand } from './commands/status.js';
import { verifyCommand } from './commands/verify.js';
import { ConfigError } from './config.js';
import { SERVE_HELP, serveCommand } from './serve.js';

/** Operator commands by name. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  maker: makerCommand,
  market: marketCommand,
  status: statusCommand,
  verify: verifyCommand,
  reconcile: reconcileCommand,
  halt: haltCommand,
  resume: resumeCommand,
  checkpoint: checkpointCommand,
  outbox: outboxCommand,
  claim: claimCommand,
};

const USAGE = [SERVE_HELP, ...Object.values(COMMANDS).map((command) => command.help)].join('\n');

/** Runs one command line to its end and returns the exit code: 1 for a mistake or a failure, with the reason on `io.errors`. */
export async function runProgram([name, ...args]: readonly string[], io: Io): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h') {
    io.output.write(USAGE);
    return 0;
  }
  if (name === 'serve') return serveCommand(args);
  try {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined) throw new ConfigError([`unknown command: ${name}; curvebook --help lists all`]);
    const line = readCommandLine(args);
    if (line.help) {
      io.output.write(command.help);
      return 0;
    }
    const unexpected = line.positionals[command.maxArguments];
    if (unexpected !== undefined) throw new ConfigError([`unexpected argument: ${unexpected}`]);
    return await command.run(line, io);
  } catch (error) {
    io.errors.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}
