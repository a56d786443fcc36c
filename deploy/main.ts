/** `npm run deploy -- <command>`: the owner's command line. Results go to standard output, errors with their code to standard error. */
import { DeployError } from './errors.js';
import { COMMANDS, HELP, readDeployLine } from './options.js';

/** Runs one command line; returns the exit code. Packages are loaded only after the line was read, so that help and errors of the line are quick. */
async function main(args: readonly string[]): Promise<number> {
  try {
    const line = readDeployLine(args);
    if (line === null) process.stdout.write(`${HELP}\n`);
    else await (await import('./run-command.js')).runCommand(line);
    return 0;
  } catch (error) {
    const known = error instanceof DeployError;
    const code = known ? error.code : 'FAILED';
    const reason = known ? error.message : (await import('./reasons.js')).reasonOf(error);
    process.stderr.write(`${code}: ${reason}\n`);
    return code === 'BAD_ARGUMENT' && args[0] !== undefined && !Object.hasOwn(COMMANDS, args[0]) ? 2 : 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
