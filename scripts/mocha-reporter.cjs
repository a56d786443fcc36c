/** Mocha's spec reporter that also writes its totals to the file named by the option `totals`. */
const { writeFileSync } = require('node:fs');
const { reporters, Runner } = require('mocha');

module.exports = class TotalsReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const { totals } = options.reporterOptions;
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats;
      writeFileSync(totals, JSON.stringify({ passed: passes, failed: failures, pending }));
    });
  }
};
