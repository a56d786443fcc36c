/**
 * Loaded by `--import` before a program of dist/: stack traces name lines of the sources. Unlike `--enable-source-maps`, it leaves
 * `util.getCallSites` alone, which pino asks when a logger is made: with the flag each start would read the map of the whole program.
 */
process.setSourceMapsEnabled(true);
