import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

/**
 * Money is bigint or an exact decimal string, so nothing that makes a double of it may appear. Ids, block numbers and times go
 * through `toSafeInt`, which refuses what a double can't hold.
 */
const noFloats = [
  {
    selector: "CallExpression[callee.name='Number']:not(FunctionDeclaration[id.name='toSafeInt'] CallExpression)",
    message: 'Amounts are bigint or exact decimal strings; use toSafeInt for ids, blocks and times.',
  },
  {
    selector: "CallExpression[callee.object.name='Number'][callee.property.name=/^(parseFloat|parseInt)$/]",
    message: 'Amounts are bigint or exact decimal strings; use toSafeInt for ids, blocks and times.',
  },
  {
    selector: "CallExpression[callee.name='parseFloat']",
    message: 'No floating point: amounts are bigint or exact decimal strings.',
  },
  {
    selector: "CallExpression[callee.property.name='map'] > Identifier.arguments[name=/^(Number|parseFloat)$/]",
    message: 'Amounts are bigint or exact decimal strings; use toSafeInt for ids, blocks and times.',
  },
  {
    selector: "UnaryExpression[operator='+'][argument.type!='Literal']",
    message: 'Unary plus makes a double; amounts are bigint or exact decimal strings.',
  },
];

const noEnvironment = {
  selector: "MemberExpression[object.name='process'][property.name='env']",
  message: 'Settings are read once, in cli/config.ts, and passed in.',
};

/** SQL stands in `ledger/`, beside the log whose tables it reads. Others pass connections and transactions on to functions of it. */
const SQL_ELSEWHERE = 'SQL belongs into ledger/ (docs/architecture.md); ask for rows by a function of it.';
const noSql = [
  { selector: 'CallExpression[callee.name=/^(q|tx|knex)$/]', message: SQL_ELSEWHERE },
  { selector: 'CallExpression[callee.property.name=/^(knex|reads)$/]', message: SQL_ELSEWHERE },
  {
    selector: "CallExpression[callee.property.name='raw'][callee.object.name=/^(q|tx|knex)$/]",
    message: SQL_ELSEWHERE,
  },
  {
    selector: "CallExpression[callee.property.name='raw'][callee.object.property.name=/^(knex|reads)$/]",
    message: SQL_ELSEWHERE,
  },
  {
    selector: 'CallExpression[callee.name=/^(sendForRows|sendChange|insertAll|upsertAll|updateAll|insertValues)$/]',
    message: SQL_ELSEWHERE,
  },
  { selector: "ImportDeclaration[source.value='knex']", message: SQL_ELSEWHERE },
];

/** What a query or stored JSON answers is typed where it is asked for, or checked: `ledger/db/aggregates.ts`, a zod schema. */
const CAST_ROW = 'Type the query (select<Row[]>, ledger/db/aggregates.ts), or check what was stored by a schema.';
const noRowCasts = [
  { selector: "TSAsExpression[expression.type='AwaitExpression']", message: CAST_ROW },
  {
    selector: "TSAsExpression[expression.callee.object.name='JSON'][expression.callee.property.name='parse']",
    message: CAST_ROW,
  },
];

/** Folders that `folder` must not import. Dependencies point one way: server, keepers, cli, deploy -> ledger -> core. */
const forbiddenImports = {
  core: ['ledger', 'liquidity', 'keepers', 'server', 'cli', 'deploy', 'test', 'typechain-types'],
  ledger: ['liquidity', 'keepers', 'server', 'cli', 'deploy', 'test', 'typechain-types'],
  liquidity: ['ledger', 'keepers', 'server', 'cli', 'deploy', 'test'],
  keepers: ['server', 'cli', 'deploy', 'test'],
  server: ['keepers', 'cli', 'deploy', 'test'],
  deploy: ['ledger', 'keepers', 'server', 'cli', 'test'],
  cli: ['test'],
  sdk: ['ledger', 'liquidity', 'keepers', 'server', 'cli', 'deploy', 'test', 'typechain-types'],
  web: ['ledger', 'liquidity', 'keepers', 'server', 'cli', 'deploy', 'test', 'typechain-types'],
  examples: ['core', 'ledger', 'liquidity', 'keepers', 'server', 'cli', 'deploy', 'test'],
};

const importDirection = Object.entries(forbiddenImports).map(([folder, forbidden]) => ({
  files: [`${folder}/**/*.{ts,tsx}`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(\\.\\./)+(${forbidden.join('|')})(/|$)`,
            message: `${folder}/ must not depend on this folder (docs/architecture.md).`,
          },
        ],
      },
    ],
  },
}));

export default tseslint.config(
  {
    ignores: [
      'node_modules/',
      'artifacts/',
      'cache/',
      'dist/',
      'coverage/',
      '.curvebook/',
      'typechain-types/',
      '**/dist/',
      'sdk/src/read/schema.ts',
      'sdk/src/stream/schema.ts',
      'contracts-package/src/abi/',
    ],
  },
  eslint.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [...tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // Interfaces ask for promises of implementations that happen to be synchronous.
      '@typescript-eslint/require-await': 'off',
      // Factories return plain functions; none of them uses `this`.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: ['error', 'always'],
      'no-console': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'no-restricted-syntax': ['error', noEnvironment],
    },
  },
  {
    files: ['{core,ledger,liquidity,keepers,server,cli,sdk,web}/**/*.{ts,tsx}'],
    rules: { 'no-restricted-syntax': ['error', ...noFloats, noEnvironment] },
  },
  {
    files: ['ledger/**/*.ts'],
    // Migrations stay as they were.
    ignores: ['ledger/migrations/**'],
    rules: { 'no-restricted-syntax': ['error', ...noFloats, ...noRowCasts, noEnvironment] },
  },
  {
    files: ['{core,liquidity,keepers,server,sdk,web}/**/*.{ts,tsx}', 'cli/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...noFloats, ...noSql, noEnvironment] },
  },
  {
    // The one place that reads the environment, and tools whose settings come from it.
    files: ['cli/config.ts', 'cli/main.ts', 'cli/sandbox/config.ts', 'deploy/environment.ts', 'hardhat.config.ts'],
    rules: { 'no-restricted-syntax': ['error', ...noFloats] },
  },
  {
    files: ['core/**/*.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        { name: 'fetch', message: 'core/ does no I/O.' },
        { name: 'setTimeout', message: 'core/ has no clock.' },
        { name: 'setInterval', message: 'core/ has no clock.' },
        { name: 'performance', message: 'core/ has no clock.' },
        { name: 'process', message: 'core/ does no I/O.' },
      ],
      'no-restricted-properties': ['error', { object: 'Date', property: 'now', message: 'core/ has no clock.' }],
    },
  },
  ...importDirection,
  {
    // Programs that people run in a terminal.
    files: ['cli/**/*.ts', 'deploy/**/*.ts', 'examples/**/*.ts', 'bench/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'no-restricted-syntax': 'off',
      'no-console': 'off',
      // chai's assertions are property reads.
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    files: [
      // Its last test looks at what all others saw.
      'test/e2e/doctor.test.ts',
      'test/support/nodes/chain-double-contracts.ts',
      'test/support/worlds/market-world.ts',
      'bench/**/*.ts',
    ],
    rules: { 'max-lines': 'off' },
  },
  {
    files: ['**/*.mjs'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'process',
          'Buffer',
          'URL',
          'console',
          'setTimeout',
          'setInterval',
          'clearTimeout',
          'clearInterval',
          'fetch',
          'Response',
          'AbortSignal',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
);
