import { runProgram } from './program.js';

const { stdin, stdout, stderr } = process;

process.exitCode = await runProgram(process.argv.slice(2), { input: stdin, output: stdout, errors: stderr });
