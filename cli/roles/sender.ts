/** What keepers that send transactions to a contract of ours share. */
import type { Address, Hex } from '../../core/types.js';
import { openArchive } from '../../keepers/archive/archive.js';
import { ArchiveError } from '../../keepers/archive/format.js';
import { createFolderStore } from '../../keepers/archive/store.js';
import { mayPost } from '../../keepers/chain/quorum.js';
import type { RpcPool } from '../../keepers/chain/pool.js';
import type { ServedContract } from '../../keepers/chain/retired-signers.js';
import type { PosterDeps } from '../../keepers/poster/poster.js';
import { ConfigError } from '../errors.js';
import type { RoleContext } from './context.js';

/** A contract with posters. */
export function posterContract(rpc: RpcPool, address: Address): ServedContract {
  const contract = address.toLowerCase() as Address;
  return { contract, mayAct: (signer) => mayPost(rpc, contract, signer) };
}

/** The archive in its folder, or where the context has it; null where none is configured. Throws ConfigError for one that is damaged or another deployment's. */
export async function archiveOf(
  { config, logger, nowMs, archiveStore }: RoleContext,
  privateKey: Hex,
): Promise<PosterDeps['archive']> {
  const { ARCHIVE_DIR: dir, ARCHIVE_REQUIRED: required, manifest } = config;
  const store = archiveStore ?? (dir === undefined ? null : createFolderStore(dir));
  if (store === null) {
    // A sandbox's manifest has accounts; nobody restores one.
    if (manifest.accounts.length === 0) logger.warn('ARCHIVE_DIR is not set: a lost database can not be made again');
    return null;
  }
  try {
    const { deploymentId } = manifest;
    return { archive: await openArchive({ store, deploymentId, privateKey, nowMs }), required };
  } catch (error) {
    if (error instanceof ArchiveError) throw new ConfigError([`ARCHIVE_DIR: ${error.message}`]);
    throw error;
  }
}
