import { runProgram } from './program.js';

const { stdin, stdout, stderr } = process;

// A reader that has enough, such as `head`, is no failure: what is printed after it left is lost, and the work goes on to its end.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

process.exitCode = await runProgram(process.argv.slice(2), { input: stdin, output: stdout, errors: stderr });
