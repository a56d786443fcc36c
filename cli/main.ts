import { MAKER_HELP, makerCommand } from './maker.js';
import { SERVE_HELP, serveCommand } from './serve.js';

const COMMANDS: Record<string, (args: readonly string[]) => Promise<number>> = {
  serve: serveCommand,
  maker: makerCommand,
};

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  const command = name === undefined ? undefined : COMMANDS[name];
  if (command === undefined) {
    process.stdout.write(`${SERVE_HELP}\n${MAKER_HELP}`);
    return name === undefined || name === '--help' || name === '-h' ? 0 : 1;
  }
  try {
    return await command(rest);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
