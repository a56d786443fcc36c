/** Helps say what a command refuses and what becomes of it when it is interrupted, with the codes that it ends with. */
import { expect } from 'chai';
import { COMMANDS } from '../../cli/commands/list.js';

describe('the help of commands', () => {
  it('names the codes after which a command is to be run again', () => {
    expect(COMMANDS['archive']!.help).to.match(/import .*SERVER_RUNS.*prune /s);
    for (const name of ['backup', 'restore']) expect(COMMANDS[name]!.help, name).to.include('INTERRUPTED');
  });
});
