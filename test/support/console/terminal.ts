import { PassThrough } from 'node:stream';
import type { Io } from '../../../cli/commands/command.js';
import { runProgram } from '../../../cli/program.js';

/** What a command line printed, and how it ended. */
export interface Ran {
  code: number;
  output: string;
  errors: string;
}

/**
 * Runs `curvebook` with these arguments in this process. `answer` is what somebody types on the terminal; without one there is no
 * terminal. `onOutput` sees what was printed so far, and ends a command that goes on until it is interrupted by returning true.
 */
export async function runCurvebook(
  args: readonly string[],
  answer?: string,
  onOutput?: (output: string) => boolean,
): Promise<Ran> {
  const printed = { output: '', errors: '' };
  const interrupt = new AbortController();
  const sink = (name: keyof typeof printed): PassThrough => {
    const stream = new PassThrough();
    stream.on('data', (chunk: Buffer) => {
      printed[name] += chunk.toString();
      if (onOutput?.(printed.output) === true) interrupt.abort();
    });
    return stream;
  };
  const input = Object.assign(new PassThrough(), { isTTY: answer !== undefined });
  if (answer !== undefined) input.end(answer);
  const io: Io = { input, output: sink('output'), errors: sink('errors'), signal: interrupt.signal };
  const code = await runProgram(args, io);
  return { code, ...printed };
}
