import { META } from './meta.js';
import type { InfoHandler } from './types.js';

/** No perpetuals, so no contexts either. */
export const metaAndAssetCtxs: InfoHandler = () => [{ ...META }, []];
