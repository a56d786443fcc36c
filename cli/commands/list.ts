/** Every operator command with its help. A command's code is imported only when it runs, so that help starts fast. */
import type { CommandLine, OptionsOfVerbs, OwnOptions } from '../arguments.js';
import {
  EXIT_CAUSE_STANDS,
  EXIT_DIFFERENCE,
  EXIT_NOT_HALTED,
  EXIT_PENDING,
  EXIT_RESTART,
  EXIT_UNFIT,
} from '../exit-codes.js';
import type { Io } from './command.js';
import { OUTBOX_ROWS, RECONCILE_WAIT_MS } from './limits.js';

/** One operator command. */
interface Command {
  /** One line for the overview. */
  summary: string;
  /** First line: usage. */
  help: string;
  /** Most arguments beside options; more are a mistake. */
  maxArguments: number;
  /** Those that no other command takes. */
  options?: OwnOptions;
  /** Those that only some of its verbs take. */
  ofVerbs?: OptionsOfVerbs;
  /** What carries it out; returns the exit code: 0, or what its help says. */
  load(): Promise<(line: CommandLine, io: Io) => Promise<number>>;
}

/** Options that all of them take. */
const COMMON_OPTIONS = `  --manifest <path>   deployment manifest (MANIFEST)
  --database <url>    sqlite:<path> or postgres://… (DATABASE_URL: for one with a password, since others can read command lines)
  --env <file>        settings that the environment lacks, such as .env of \`curvebook init\`
  --json              one JSON value on standard output
`;

/** Operator commands by name. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  init: {
    summary: 'writes a deployment configuration and the settings of a server',
    help: `curvebook init [--chain <id>] [--rpc <urls>] [--owner <address>] [--market <pair>]… [--new-keys] [--dir <folder>] [--force] [options]

Writes <folder>/deployments/<chain id>.config.json, which \`npm run deploy\` reads (or beside the <chain id>.json that --manifest names), and <folder>/.env with every
setting of a server, both checked by what reads them later. What no option says is asked for on a terminal. Files that are there stay, unless --force says otherwise, and
then under another name; keys always stay. .env is readable by you alone. A key that comes from a keystore is never written; one that is in the environment (POSTER_PRIVATE_KEY, …) is written to .env.

  --chain <id>        chain, 8453 without; what is known of it comes from its preset
  --rpc <urls>        JSON-RPC endpoints, comma-separated (RPC_URL)
  --owner <address>   who shall own the contracts in the end
  --operator <address>  ledger row of the operator; the owner without (OPERATOR_ADDRESS)
  --market <pair>     <BASE>-<QUOTE>, or <BASE>-<QUOTE>=<tick>/<lot>; several times for several
  --token <token>     <SYMBOL>=<address>:<decimals>, for what the preset does not know
  --max-ttl <s>       longest life of a post; 60 without
  --withdraw-delay <s>  from a settled withdrawal to its payment; 600 without
  --poster-keystore <file>, --settler-keystore <file>, --executor-keystore <file>
                      encrypted JSON files with the keys
  --password-file <file>  their password (KEYSTORE_PASSWORD_FILE)
  --new-keys          make three keys, encrypted in <folder>/keys/, with a new password in <folder>/keys/password
  --alerts <url>      where alerts are posted to (ALERT_WEBHOOK_URL)
  --port <number>     HTTP port (PORT)
  --dir <folder>      where to write; here without
  --force             replace .env and the configuration; the old ones are kept beside them
  --yes               do not ask
${COMMON_OPTIONS}`,
    maxArguments: 0,
    options: {
      ...{ chain: 'value', owner: 'value', operator: 'value', market: 'value', token: 'value', dir: 'value' },
      ...{ 'max-ttl': 'value', 'withdraw-delay': 'value', alerts: 'value', 'password-file': 'value' },
      ...{ 'poster-keystore': 'value', 'settler-keystore': 'value', 'executor-keystore': 'value' },
      ...{ 'new-keys': 'switch', force: 'switch' },
    },
    load: async () => (await import('./init/init.js')).runInit,
  },
  doctor: {
    summary: 'everything that can be wrong before money moves, and what to do about it',
    help: `curvebook doctor [--test-alert] [--roles <list>] [--rpc <urls>] [--port <number>] [--archive <dir>] [options]

Looks at settings, files with secrets, each RPC endpoint (chain, lag, headers, state, logs, receipts, proofs), the clock, the contracts with their
owner, rights of the keys, balances in hours of gas, markets, Permit2 and swaps, the database with its disk and replicas, ports, the
receiver of alerts and the archive; says what deploying and running cost at the gas price of the moment. Before a deployment it judges what can be
judged. Sends nothing and changes nothing. Each line is OK, WARN or FAIL with a stable code, and below it what to do. Exits with ${EXIT_UNFIT} when
anything fails.

  --test-alert        send the receiver of alerts (ALERT_WEBHOOK_URL) one to try it
  --roles <list>      what is judged: the settings of these roles; all without (ROLES)
  --rpc <urls>        JSON-RPC endpoints, comma-separated (RPC_URL)
  --port <number>     HTTP port (PORT)
  --archive <dir>     the archive (ARCHIVE_DIR)
${COMMON_OPTIONS}`,
    maxArguments: 0,
    options: { 'test-alert': 'switch' },
    load: async () => (await import('./doctor/doctor.js')).runDoctor,
  },
  maker: {
    summary: 'who may quote: approve, suspend, list',
    help: `curvebook maker <approve|suspend> <address> [options]
curvebook maker list [options]

Approval lets an address quote; suspension closes its orders and keeps its funds withdrawable.

${COMMON_OPTIONS}`,
    maxArguments: 2,
    load: async () => (await import('./maker.js')).runMaker,
  },
  market: {
    summary: 'delists and relists markets, and lists them',
    help: `curvebook market <delist|relist> <pair> [options]
curvebook market list [options]

A delisted market keeps its index and takes no orders; those that are open are closed, and its curve expires within its
time to live. Listing a new market is an act of the contracts' owner.

${COMMON_OPTIONS}`,
    maxArguments: 2,
    load: async () => (await import('./market.js')).runMarket,
  },
  token: {
    summary: 'what stands against tokens, and reads one again that changed',
    help: `curvebook token list [options]
curvebook token reread <token> [--yes] [--rpc <url>] [options]

A token that does not answer, whose balance falls by itself, that refuses transfers out of the vault, or that changed its symbol or decimals
is in quarantine: its markets take no orders and quote nothing, withdrawals in it wait, and everything else goes on. That ends by itself
once nothing has been wrong for a minute. \`reread\` shows what a token says of itself now, asks, and takes that for right from then on, so
that a quarantine for another symbol or other decimals ends. Amounts, ticks and lots stay those of the listing.

  --rpc <url>         ask this node (RPC_URL)
  --yes               do not ask
${COMMON_OPTIONS}`,
    maxArguments: 2,
    ofVerbs: { yes: ['reread'] },
    load: async () => (await import('./token.js')).runToken,
  },
  status: {
    summary: 'where the ledger stands and why it is not ready, what is live, what waits',
    help: `curvebook status [--watch] [--every <seconds>] [--rpc <url>] [options]

Says where the ledger stands and why it is not ready, what is halted, which curves are live, what waits, what the last
reorganisation of the chain took back from whom, how large the database is and what the last 24 hours added to it.

  --watch             again and again until it is interrupted: a picture that redraws itself on a terminal, one look after the other
                      elsewhere, with --json one value per line. A look that fails is shown, and the next one follows
  --every <seconds>   between two looks, 1 to 3600 (2)
${COMMON_OPTIONS}`,
    maxArguments: 0,
    options: { watch: 'switch', every: 'value' },
    load: async () => (await import('./status.js')).runStatus,
  },
  verify: {
    summary: 'derives everything again and compares, with the chain, too',
    help: `curvebook verify [--rpc <url>] [options]

Derives every decomposition, posting, balance, withdrawal and checkpoint again from the rows that it was derived from; with --rpc also compares
blocks, events, holdings, claims and live curves with the chain. Reads only; the server may run. Exits with ${EXIT_DIFFERENCE} at the first difference. A token
that changed since it was listed, or that the watcher has in quarantine, is a warning.

  --rpc <url>         compare with this node, too
${COMMON_OPTIONS}`,
    maxArguments: 0,
    load: async () => (await import('./verify.js')).runVerify,
  },
  backup: {
    summary: 'writes the database into one file, while the server goes on',
    help: `curvebook backup <file> [options]

Writes one consistent state of the database into a new file that its owner alone may read: PostgreSQL by pg_dump, which must be
installed, in the server's version or newer. The server may run. A file that is there is not overwritten. When it is interrupted it says INTERRUPTED and leaves
nothing behind: it can be run again. What happens after it is in the archive (ARCHIVE_DIR).

${COMMON_OPTIONS}`,
    maxArguments: 1,
    load: async () => (await import('./backup.js')).runBackup,
  },
  restore: {
    summary: 'makes a database of a backup, and verifies it',
    help: `curvebook restore <file> [--rpc <url>] [options]

Makes the database that DATABASE_URL names of a backup, and derives everything in it again, as \`verify\` does. Refuses a database that holds anything, and a
backup of another deployment or of the other kind of database. Exits with ${EXIT_DIFFERENCE} at a difference, and leaves nothing behind then. When it
is interrupted it says INTERRUPTED and leaves nothing behind either: it can be run again. What happened after the backup comes from the archive:
\`curvebook archive import\`, before anything is served.

  --rpc <url>         compare with this node, too
${COMMON_OPTIONS}`,
    maxArguments: 1,
    load: async () => (await import('./backup.js')).runRestore,
  },
  reconcile: {
    summary: 'takes back what the chain no longer has, and reads anew what differs from it',
    help: `curvebook reconcile [--from <block>] [--deep] [--yes] [--capital-origin] [--rpc <url>] [options]

Compares the ledger with the chain. What the chain no longer has is shown (deposits, fills, and whom they were told to); else every booking that
is missing or too much is, as \`verify --rpc\` finds them. Asks, and has the watcher roll the ledger back to the last scan before that by
reversing entries, and read the chain anew, each block proven. What is derived from the fills (candles, positions, sums of accounts) is compared, too,
and made anew where it differs. That ends the halt unless a sum does not hold then. Refuses more than 64 lost
blocks without --deep. Exits with ${EXIT_PENDING} when the watcher has not done it within ${RECONCILE_WAIT_MS / 1_000} s; it will when it runs. A newer
request makes an older one that waits void: which one is shown before it asks, and "superseded" is said of the older one, with ${EXIT_PENDING}, too.

  --from <block>      read this block and everything after it anew, whether or not it differs
  --deep              take back more than 64 blocks, if a majority of the endpoints agrees on the last one that stays
  --yes               do not ask
  --capital-origin    let the net_capital counters start again at the next block
  --rpc <url>         JSON-RPC endpoints, comma-separated (RPC_URL)
${COMMON_OPTIONS}`,
    maxArguments: 0,
    load: async () => (await import('./reconcile.js')).runReconcile,
  },
  halt: {
    summary: 'stops readiness, publication and settlement on purpose',
    help: `curvebook halt [<note>] [options]

Stops readiness, publication and settlement until \`curvebook resume\`. The ledger goes on following the chain; cancels work.

${COMMON_OPTIONS}`,
    maxArguments: Number.POSITIVE_INFINITY,
    load: async () => (await import('./halt.js')).runHalt,
  },
  resume: {
    summary: 'puts an end to halts whose cause is gone',
    help: `curvebook resume [--rpc <url>] [options]

Puts an end to every halt that stands now, the operator's own and those that the watcher found, once what they found is no longer so: what
differs from the chain is put right with \`curvebook reconcile\`, what nothing explains with \`curvebook suspense\`. Exits with ${EXIT_CAUSE_STANDS} while the
cause of one stands, with what to run, and with ${EXIT_NOT_HALTED} when nothing is halted. A halt that somebody places meanwhile stays, and so do the others then.

  --rpc <url>         JSON-RPC endpoints, comma-separated (RPC_URL)
${COMMON_OPTIONS}`,
    maxArguments: 0,
    load: async () => (await import('./halt.js')).runResume,
  },
  suspense: {
    summary: 'what the chain did and nothing stored explains; assigns it to an account',
    help: `curvebook suspense list [--all] [options]
curvebook suspense assign <item>|all <account>|operator <reason> [--yes] [options]

Lists what is in suspense: fills of curves that no stored book explains, settlements that nobody here prepared, payouts beyond what their
maker had. It is in nobody's balance, and no claim that it may concern is settled while it is open. Import the missing publications if they are
archived; only what stays open after that is to be assigned. An assigned item is booked to the account with the next scan, and the reason
stays in the operator log. A settlement moved nothing: assigning it says that it was looked at. What is decided for another account and not
booked yet is shown, and decided otherwise only by naming the item alone.

  --all               assigned ones, too, and curves that were not prepared here
  --yes               do not ask
${COMMON_OPTIONS}`,
    maxArguments: Number.POSITIVE_INFINITY,
    ofVerbs: { all: ['list'], yes: ['assign'] },
    load: async () => (await import('./suspense.js')).runSuspense,
  },
  checkpoint: {
    summary: 'the latest checkpoint with its rows',
    help: `curvebook checkpoint [options]

Shows the latest checkpoint: its root, its block, and what every account has in it, in base units.

${COMMON_OPTIONS}`,
    maxArguments: 0,
    load: async () => (await import('./checkpoint.js')).runCheckpoint,
  },
  outbox: {
    summary: 'what keepers have signed and the chain has not used yet',
    help: `curvebook outbox [<signer>] [--all] [options]

Lists the transactions that keepers have signed and that the chain has not used yet, newest nonce first; with --all the newest ${OUTBOX_ROWS}
in any state: unmined, used, or given up, when its key is not in use any more and nothing can come of it.

${COMMON_OPTIONS}`,
    maxArguments: 1,
    load: async () => (await import('./outbox.js')).runOutbox,
  },
  partitions: {
    summary: 'old signed posts, out of a PostgreSQL database: list, cut, detach, attach',
    help: `curvebook partitions <list|cut|detach|attach> [<number>] [--yes] [options]

Half of what posts take are their signed transactions (the outbox). Nothing is divided before the first cut; keepers go on meanwhile.

list     the partitions of the outbox, by when their transactions were signed, and their bytes
cut      ends the newest partition at the end of tomorrow (UTC) and begins the next one there: once a month, for instance. Posts are held up
         while it is read, for 10 s at most; with --yes for as long as that takes
detach   checks every transaction of a partition against its hash and its publications, once all its posts are final, and leaves of it what
         is of use: transactions that are no posts, and each signer's newest. The others are in a table of their own then, named
         outbox_part_<number>_detached, to be dumped and dropped. Posts are held up for 10 s at most
attach   puts that table back, if its rows are those that left. Posts are held up for 10 s at most

  --yes               do not ask
${COMMON_OPTIONS}`,
    maxArguments: 2,
    load: async () => (await import('./partitions.js')).runPartitions,
  },
  archive: {
    summary: 'publications, books and settlements outside the database: list, check, export, import, prune',
    help: `curvebook archive <list|check|export|import|prune> [--archive <dir>] [--signer <addresses>] [--before <time>] [--dry-run] [--yes] [options]

list     what the archive holds, by folder
check    whether every file is there, unaltered and signed; with --rpc also what \`import\` would do
export   writes the publications of the database that the archive lacks, signed with POSTER_PRIVATE_KEY, and the settlements, signed with
         SETTLER_PRIVATE_KEY
import   after a loss: puts publications, books and settlements that the database lacks into it, or into a new one, once they agree with the chain;
         lets all numbers go on above what was given away, closes the open orders, refuses older nonces, and has the watcher read
         anew what it booked without knowing the curves. Stop gateway, poster and settler first: while one runs it says SERVER_RUNS,
         and is to be run again afterwards, since it may be half done. Asks before it does anything.
prune    removes the oldest folders of files, of which neither this database nor a backup of --before or later can lack anything; says what and
         asks. Nothing but the archive makes no database any more then.

  --archive <dir>     the archive (ARCHIVE_DIR)
  --before <time>     when the oldest backup was made that may be restored, 2026-01-31T12:00:00Z
  --dry-run           of prune: say what would be removed, and remove nothing
  --signer <list>     posters and settlers of former times whose files are to be believed, comma-separated
  --yes               do not ask
  --rpc <url>         JSON-RPC endpoints, comma-separated (RPC_URL)
${COMMON_OPTIONS}`,
    maxArguments: 1,
    ofVerbs: { before: ['prune'], 'dry-run': ['prune'], signer: ['check', 'import'], yes: ['import', 'prune'] },
    load: async () => (await import('./archive.js')).runArchive,
  },
  claim: {
    summary: 'lowers a settled claim, or cancels it',
    help: `curvebook claim lower <maker> <token> <amount> [options]

Asks the settler to lower a settled claim to an amount in token units, 0 to cancel it. Of use while its delay has not passed: an
executed claim can't be lowered. What is taken off stays in the maker's balance.

${COMMON_OPTIONS}`,
    maxArguments: 4,
    load: async () => (await import('./claim.js')).runClaim,
  },
};

/** What runs the server; it takes other options than the rest. */
export const SERVE = {
  summary: 'runs the roles of a server until it is interrupted; creates the database',
  maxArguments: 0,
  help: `curvebook serve [options]

Runs the roles of this process until it is interrupted. Every option overrides the setting of the same name in the environment. Exit
codes: 0 it was told to stop, 1 a restart won't help, ${EXIT_RESTART} start it again.

  --manifest <path>   deployment manifest (MANIFEST)
  --database <url>    sqlite:<path> or postgres://… (DATABASE_URL: for one with a password, since others can read command lines)
  --roles <list>      of watcher,gateway,poster,settler,executor, or reader alone (ROLES)
  --port <number>     HTTP port (PORT)
  --rpc <urls>        JSON-RPC endpoints, comma-separated (RPC_URL)
  --archive <dir>     where publications are written before they are sent (ARCHIVE_DIR)
  --env <file>        settings that the environment lacks, such as .env of \`curvebook init\`
`,
};

/** What `curvebook help` says. */
export const OVERVIEW = `curvebook <command> [options]

${Object.entries({ serve: SERVE, ...COMMANDS })
  .map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`)
  .join('\n')}

\`curvebook help <command>\` says more of each; \`curvebook --version\` which release this is. Every command but \`serve\` takes --json.

Exit codes: 0 done; 1 refused or failed, with the reason on standard error, or as {"ok":false,…} on standard output with --json;
${EXIT_DIFFERENCE} \`verify\` or \`restore\` found a difference; ${EXIT_PENDING} \`reconcile\` is asked for and not carried out yet; ${EXIT_NOT_HALTED} \`resume\` found no halt; ${EXIT_CAUSE_STANDS} the cause
of a halt stands; ${EXIT_UNFIT} \`doctor\` found something in the way; ${EXIT_RESTART} \`serve\` wants to be started again.
`;
