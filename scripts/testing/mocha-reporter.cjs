/** Mocha's spec reporter; writes its totals, what each test and hook took, and why tests failed to the file named by the option `totals`. */
const { writeFileSync } = require('node:fs');
const { reporters, Runner } = require('mocha');

module.exports = class TotalsReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const { totals } = options.reporterOptions;
    const took = new Map();
    const reasons = [];
    const add = (one) => {
      const title = one.fullTitle();
      took.set(title, (took.get(title) ?? 0) + (one.duration ?? 0));
    };
    runner.on(Runner.constants.EVENT_TEST_END, add);
    runner.on(Runner.constants.EVENT_HOOK_END, add);
    runner.on(Runner.constants.EVENT_TEST_FAIL, (one, error) =>
      reasons.push({ title: one.fullTitle(), reason: String(error?.stack ?? error) }),
    );
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending } = this.stats;
      const tests = [...took].map(([title, tookMs]) => ({ title, tookMs }));
      writeFileSync(totals, JSON.stringify({ passed: passes, failed: failures, pending, tests, reasons }));
    });
  }
};
