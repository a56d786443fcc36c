/** What the sandbox's chain and its users agree on. */

export const SANDBOX_CHAIN_ID = 8453;
/** Well known, worthless anywhere else: the accounts of every Hardhat network. */
export const SANDBOX_MNEMONIC = 'test test test test test test test test test test test junk';
