import { readCommandLine } from './arguments.js';
import { checkpointCommand } from './commands/checkpoint.js';
import { claimCommand } from './commands/claim.js';
import type { Command } from './commands/command.js';
import { haltCommand, resumeCommand } from './commands/halt.js';
import { outboxCommand } from './commands/outbox.js';
import { reconcileCommand } from './commands/reconcile.js';
import { statusCommand } from './commands/status.js';
import { verifyCommand } from './commands/verify.js';
import { MAKER_HELP, makerCommand } from './maker.js';
import { SERVE_HELP, serveCommand } from './serve.js';

const COMMANDS: Record<string, Command> = {
  status: statusCommand,
  verify: verifyCommand,
  reconcile: reconcileCommand,
  halt: haltCommand,
  resume: resumeCommand,
  checkpoint: checkpointCommand,
  outbox: outboxCommand,
  claim: claimCommand,
};

/** Commands that read their own command line. */
const PROGRAMS: Record<string, (args: readonly string[]) => Promise<number>> = {
  serve: serveCommand,
  maker: makerCommand,
};

const USAGE = [SERVE_HELP, MAKER_HELP, ...Object.values(COMMANDS).map((command) => command.help)].join('\n');

async function run(name: string, args: readonly string[]): Promise<number | null> {
  const program = PROGRAMS[name];
  if (program !== undefined) return program(args);
  const command = COMMANDS[name];
  if (command === undefined) return null;
  const line = readCommandLine(args);
  if (!line.help) return command.run(line);
  process.stdout.write(command.help);
  return 0;
}

async function main([name, ...args]: readonly string[]): Promise<number> {
  try {
    const code = name === undefined ? null : await run(name, args);
    if (code !== null) return code;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  process.stdout.write(USAGE);
  return name === undefined || name === '--help' || name === '-h' ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
