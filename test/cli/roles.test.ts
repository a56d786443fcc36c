/** The registry of roles: what is declared once must hold for all of them. */
import { expect } from 'chai';
import { settingsSchema } from '../../cli/config.js';
import { ROLES } from '../../cli/roles/registry.js';
import { commonSettings } from '../../cli/settings/common.js';
import { LOG_OF_ROLE, ROLE_NAMES } from '../../ledger/roles.js';

describe('roles', () => {
  it('are in the registry, each once, and own a log each', () => {
    expect(ROLES.map(({ name }) => name)).to.have.members(ROLE_NAMES);
    expect(new Set(ROLES.map(({ name }) => LOG_OF_ROLE[name])).size).to.equal(ROLES.length);
  });

  it('declare settings that nobody else declares', () => {
    const names = [commonSettings, ...ROLES.map(({ settings }) => settings)].flatMap((shape) => Object.keys(shape));
    expect(names).to.have.members(Object.keys(settingsSchema.shape));
    expect(new Set(names).size).to.equal(names.length);
  });

  it('have a setting for their key when they sign, and none otherwise', () => {
    for (const { name, signs, settings } of ROLES) {
      expect(Object.keys(settings).includes(`${name.toUpperCase()}_PRIVATE_KEY`), name).to.equal(signs);
    }
  });
});
